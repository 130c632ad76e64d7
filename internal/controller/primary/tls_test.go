package primary

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/controller/target"
)

// A connection with TLS verifies the server. A connection without TLS to the same server fails.
func TestDialTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12})))
	p4v1.RegisterP4RuntimeServer(server, p4v1.UnimplementedP4RuntimeServer{})
	go server.Serve(l)
	defer server.Stop()
	trust := x509.NewCertPool()
	trust.AddCert(web.Certificate())
	for _, test := range []struct {
		config *tls.Config
		want   codes.Code
	}{
		{&tls.Config{RootCAs: trust, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}, codes.Unimplemented}, // by the server
		{&tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}, codes.Unavailable},
		{nil, codes.Unavailable},
	} {
		conn, err := Dial(target.Endpoint{Address: l.Addr().String(), TLS: test.config}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := p4v1.NewP4RuntimeClient(conn).Capabilities(ctx, &p4v1.CapabilitiesRequest{}); status.Code(err) != test.want {
			t.Errorf("%+v: %v, want %v", test.config, err, test.want)
		}
	}
}
