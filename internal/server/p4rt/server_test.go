package p4rt

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/test/bufconn"
)

func TestCapabilities(t *testing.T) {
	r := newRig(t, Options{})
	for _, id := range []uint64{0, testDevice} {
		c, err := r.client.Capabilities(r.context(), &p4v1.CapabilitiesRequest{DeviceId: id})
		if err != nil || c.GetP4RuntimeApiVersion() != apiVersion {
			t.Errorf("device %d: got %v, %v", id, c, err)
		}
	}
	if _, err := r.client.Capabilities(r.context(), &p4v1.CapabilitiesRequest{DeviceId: 1}); codeOfRPC(err) != codes.NotFound {
		t.Errorf("an unknown device: %v", err)
	}
}

// TestLargeMessage: the server rejects a message above the limit and keeps the
// connection.
func TestLargeMessage(t *testing.T) {
	r := newRig(t, Options{})
	s := r.primary()
	big := &p4v1.ForwardingPipelineConfig{P4DeviceConfig: make([]byte, 64<<20)}
	if err := s.configure(verify, big); codeOfRPC(err) != codes.ResourceExhausted {
		t.Errorf("got %v, want RESOURCE_EXHAUSTED", err)
	}
	s.must(s.configure(commitNew, testConfig(t)))
}

// TestManyConnections has 200 controllers on separate connections.
func TestManyConnections(t *testing.T) {
	r := newRig(t, Options{})
	s := r.primary()
	s.must(s.configure(commitNew, testConfig(t)))
	var work sync.WaitGroup
	for range 200 {
		conn := r.dial()
		work.Go(func() {
			client := p4v1.NewP4RuntimeClient(conn)
			stream, err := client.StreamChannel(r.context())
			if err != nil {
				t.Error(err)
				return
			}
			u := &p4v1.MasterArbitrationUpdate{DeviceId: testDevice}
			if err := stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{Arbitration: u}}); err != nil {
				t.Error(err)
				return
			}
			if m, err := stream.Recv(); err != nil || codes.Code(m.GetArbitration().GetStatus().GetCode()) != codes.AlreadyExists {
				t.Errorf("got %v, %v", m, err)
			}
			if _, err := client.GetForwardingPipelineConfig(r.context(), &p4v1.GetForwardingPipelineConfigRequest{
				DeviceId: testDevice, ResponseType: p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY,
			}); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
}

func TestStopEndsStreams(t *testing.T) {
	r := newRig(t, Options{})
	s := r.primary()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.server.Stop(ctx)
	if ctx.Err() != nil {
		t.Error("stopping takes too long")
	}
	s.wantEnd(codes.Unavailable)
}

// certificate creates a certificate, signed by parent or self-signed.
func certificate(t *testing.T, name string, parent *tls.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: parent == nil, BasicConstraintsValid: true,
	}
	signer, signerKey := template, any(key)
	if parent != nil {
		signer, signerKey = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, signerKey)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// TestStopBeforeServe stops a server before Serve is called, as may happen with
// two goroutines: Serve must return and close the listener.
func TestStopBeforeServe(t *testing.T) {
	dev, err := NewDevice(DeviceOptions{Load: loadProgram})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	s, err := NewServer(dev, Options{DeviceID: testDevice})
	if err != nil {
		t.Fatal(err)
	}
	l := bufconn.Listen(1)
	s.Stop(context.Background())
	if err := s.Serve(l); err != nil {
		t.Errorf("serving: %v", err)
	}
	if _, err := l.Dial(); err == nil {
		t.Error("the listener is open")
	}
}

func TestMutualTLS(t *testing.T) {
	ca, other := certificate(t, "ca", nil), certificate(t, "other", nil)
	server, client := certificate(t, "switch", &ca), certificate(t, "controller", &ca)
	stranger := certificate(t, "stranger", &other)
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)

	dev, err := NewDevice(DeviceOptions{Load: loadProgram})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	s, err := NewServer(dev, Options{DeviceID: testDevice, TLS: &tls.Config{
		Certificates: []tls.Certificate{server}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	ask := func(certs ...tls.Certificate) error {
		creds := credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "switch", Certificates: certs})
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(creds))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err = p4v1.NewP4RuntimeClient(conn).Capabilities(ctx, &p4v1.CapabilitiesRequest{})
		return err
	}
	if err := ask(client); err != nil {
		t.Errorf("the controller is refused: %v", err)
	}
	if err := ask(stranger); codeOfRPC(err) != codes.Unavailable {
		t.Errorf("a stranger gets %v", err)
	}
	if err := ask(); codeOfRPC(err) != codes.Unavailable {
		t.Errorf("a client without certificate gets %v", err)
	}
	s.Stop(context.Background())
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestFight: two controllers take mastership from each other and write, a third one reads,
// clients disconnect at random, and configs are pushed, all under traffic. No acknowledged
// entry may be lost, and nothing may deadlock.
func TestFight(t *testing.T) {
	s := configured(t)
	r := s.rig
	ports := [2]*testPort{newTestPort(), newTestPort()}
	s.must(r.dev.AddPort(1, ports[0], nil))
	s.must(r.dev.AddPort(2, ports[1], nil))

	var next atomic.Uint64 // election id
	next.Store(1)
	// Traffic and reads run in parallel, a batch of each per round.
	rounds := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	var work sync.WaitGroup
	work.Go(func() { // traffic
		for range rounds[0] {
			for i := range 400 {
				ports[0].in <- frame(1, byte(i), "x")
			}
		}
	})
	work.Go(func() { // a reader that often cancels
		for i := 0; ; i++ {
			if _, ok := <-rounds[1]; !ok {
				return
			}
			ctx, cancel := context.WithCancel(context.Background())
			stream, err := r.client.Read(ctx, &p4v1.ReadRequest{DeviceId: testDevice, Entities: everything()})
			if err == nil && i%2 == 0 {
				stream.Recv()
			}
			cancel()
		}
	})
	var fighters sync.WaitGroup
	for c := range byte(2) {
		fighters.Go(func() { fight(t, r, c, &next, rounds[:]) })
	}
	fighters.Wait()
	for _, c := range rounds {
		close(c)
	}
	work.Wait()

	// The last controller is the primary.
	last := r.open()
	last.claim(&p4v1.MasterArbitrationUpdate{DeviceId: testDevice, ElectionId: uint128(1 << 40)})
	last.wantArbitration(codes.OK, uint128(1<<40))
	last.must(last.configure(commitNew, testConfig(t)))
	last.must(last.write(insert(t, macEntry(t, "\x01"))))
	last.mustRead(1, entityOf(&p4v1.TableEntry{TableId: idOf(t, "AllIngress.macs")}))
}

// fight repeatedly claims mastership, and while it is primary writes entries
// that it must read back. It signals each round to the parallel goroutines.
func fight(t *testing.T, r *rig, who byte, next *atomic.Uint64, rounds []chan struct{}) {
	for i := range 100 {
		for _, c := range rounds {
			select {
			case c <- struct{}{}:
			default: // still busy with the previous round
			}
		}
		id := uint128(next.Add(1))
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		stream, err := r.client.StreamChannel(ctx)
		if err != nil {
			t.Error(err)
			cancel()
			return
		}
		stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{
			Arbitration: &p4v1.MasterArbitrationUpdate{DeviceId: testDevice, ElectionId: id},
		}})
		if _, err := stream.Recv(); err != nil {
			t.Errorf("claiming %v: %v", id, err)
		}
		entry := route(t, string([]byte{10, who, byte(i), 0}), 24, "\x02")
		write := func(ctx context.Context, u ...*p4v1.Update) error {
			_, err := r.client.Write(ctx, &p4v1.WriteRequest{
				DeviceId: testDevice, ElectionId: id, Updates: u, Atomicity: p4v1.WriteRequest_Atomicity(i % 3),
			})
			return err
		}
		err = write(ctx, insert(t, entry))
		if c := codeOfRPC(err); c != codes.OK && c != codes.PermissionDenied {
			t.Errorf("inserting: %s", describe(err))
		}
		if err == nil && i%10 == 5 {
			// The entry must survive pushing a config under traffic, both of
			// the running program and of another version.
			config := testConfig(t)
			if i/10%2 == 1 {
				config = nextConfig(t)
			}
			_, cerr := r.client.SetForwardingPipelineConfig(ctx, &p4v1.SetForwardingPipelineConfigRequest{
				DeviceId: testDevice, ElectionId: id, Action: reconcile, Config: config,
			})
			if c := codeOfRPC(cerr); c != codes.OK && c != codes.PermissionDenied {
				t.Errorf("reconciling: %v", cerr)
			}
		}
		if err == nil {
			stream2, rerr := r.client.Read(ctx, &p4v1.ReadRequest{DeviceId: testDevice, Entities: []*p4v1.Entity{entityOf(keyOf(entry))}})
			if rerr != nil {
				t.Error(rerr)
			} else if m, rerr := stream2.Recv(); rerr != nil || len(m.GetEntities()) != 1 {
				t.Errorf("an entry that was inserted is lost: %v, %v", m, rerr)
			}
			write(ctx, modify(t, entry))
			write(ctx, remove(t, entry))
		}
		// Disconnect, every other time in the middle of a write.
		if i%2 == 0 {
			var batch []*p4v1.Update
			for j := range 50 {
				batch = append(batch, insert(t, route(t, string([]byte{11, who, byte(i), byte(j)}), 32, "\x01")))
			}
			go write(ctx, batch...)
		}
		cancel()
	}
}
