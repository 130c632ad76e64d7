package codegen_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/p4lb/p4lb/internal/p4"
)

// simpleSwitchGRPC is a switch process that P4Runtime configures. Packets go
// through its socket for tests.
type simpleSwitchGRPC struct {
	simpleSwitch
	client p4v1.P4RuntimeClient
	info   *configv1.P4Info
}

// grpcElection is the election id of the one client.
var grpcElection = &p4v1.Uint128{Low: 1}

// startSimpleSwitchGRPC runs a program on the simple_switch_grpc in a folder.
func startSimpleSwitchGRPC(t *testing.T, dir, text string) *simpleSwitchGRPC {
	t.Helper()
	program, err := p4.CompileText("p.p4", []byte(text), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	socket, addr := filepath.Join(tmp, "packets"), "127.0.0.1:"+freePort(t)
	process := exec.Command(filepath.Join(dir, "simple_switch_grpc"), "--no-p4", "--packet-in", "ipc://"+socket, "--thrift-port", freePort(t),
		"--notifications-addr", "ipc://"+filepath.Join(tmp, "notifications"), "--log-level", "off", "--", "--grpc-server-addr", addr)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &simpleSwitchGRPC{client: p4v1.NewP4RuntimeClient(conn), info: program.P4Info}
	s.configure(t, program)
	if s.packets, err = net.Dial("unix", socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.packets.Close() })
	if _, err := s.packets.Write([]byte{0, 'S', 'P', 0, 0, 16, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(s.packets, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	return s
}

// configure waits for the server, becomes primary and sends the program.
func (s *simpleSwitchGRPC) configure(t *testing.T, program *p4.Program) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	stream, err := s.client.StreamChannel(ctx, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{
		Arbitration: &p4v1.MasterArbitrationUpdate{ElectionId: grpcElection},
	}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.SetForwardingPipelineConfig(ctx, &p4v1.SetForwardingPipelineConfigRequest{
		ElectionId: grpcElection, Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
		Config: &p4v1.ForwardingPipelineConfig{P4Info: program.P4Info, P4DeviceConfig: program.JSON()},
	}); err != nil {
		t.Fatal(err)
	}
}

// commands executes simple_switch_CLI commands over P4Runtime.
func (s *simpleSwitchGRPC) commands(lines []string) error {
	nodes := map[string][]string{}
	for _, line := range lines {
		u := &p4v1.Update{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{}}
		switch f := strings.Fields(line); f[0] {
		case "table_add":
			arrow := slices.Index(f, "=>")
			u.Entity.Entity = &p4v1.Entity_TableEntry{TableEntry: s.entry(f[1], f[2], f[3:arrow], f[arrow+1:])}
		case "table_set_default":
			e := s.entry(f[1], f[2], nil, f[3:])
			e.IsDefaultAction = true
			u.Type, u.Entity.Entity = p4v1.Update_MODIFY, &p4v1.Entity_TableEntry{TableEntry: e}
		case "mirroring_add":
			n := inNumbers(f[1:])
			u.Entity.Entity = replicationEntry(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{
				CloneSessionEntry: &p4v1.CloneSessionEntry{SessionId: n[0], Replicas: replicas(f[2:])},
			}})
		case "mc_node_create":
			nodes[strconv.Itoa(len(nodes))] = f[2:]
			continue
		case "mc_mgrp_create":
			continue // with its node
		case "mc_node_associate":
			u.Entity.Entity = replicationEntry(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{
				MulticastGroupEntry: &p4v1.MulticastGroupEntry{MulticastGroupId: inNumbers(f[1:])[0], Replicas: replicas(nodes[f[2]])},
			}})
		default:
			return fmt.Errorf("unknown command %s", f[0])
		}
		if _, err := s.client.Write(context.Background(), &p4v1.WriteRequest{ElectionId: grpcElection, Updates: []*p4v1.Update{u}}); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

func replicationEntry(e *p4v1.PacketReplicationEngineEntry) *p4v1.Entity_PacketReplicationEngineEntry {
	return &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: e}
}

func replicas(ports []string) []*p4v1.Replica {
	var list []*p4v1.Replica
	for _, port := range inNumbers(ports) {
		//lint:ignore SA1019 what servers of all ages take
		list = append(list, &p4v1.Replica{PortKind: &p4v1.Replica_EgressPort{EgressPort: port}, Instance: 1})
	}
	return list
}

// entry builds a table entry from names.
func (s *simpleSwitchGRPC) entry(table, action string, key, args []string) *p4v1.TableEntry {
	e := &p4v1.TableEntry{}
	for _, t := range s.info.GetTables() {
		if t.GetPreamble().GetName() != table {
			continue
		}
		e.TableId = t.GetPreamble().GetId()
		for i, k := range key {
			m := &p4v1.FieldMatch{FieldId: t.GetMatchFields()[i].GetId()}
			if value, mask, ok := strings.Cut(k, "&&&"); ok {
				m.FieldMatchType = &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: inCanonical(value), Mask: inCanonical(mask)}}
				e.Priority, args = int32(inNumbers(args[len(args)-1:])[0]), args[:len(args)-1]
			} else if value, length, ok := strings.Cut(k, "/"); ok {
				n, _ := strconv.Atoi(length)
				m.FieldMatchType = &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: inCanonical(value), PrefixLen: int32(n)}}
			} else {
				m.FieldMatchType = &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: inCanonical(k)}}
			}
			e.Match = append(e.Match, m)
		}
	}
	call := &p4v1.Action{}
	for _, a := range s.info.GetActions() {
		if a.GetPreamble().GetName() != action {
			continue
		}
		call.ActionId = a.GetPreamble().GetId()
		for i, arg := range args {
			call.Params = append(call.Params, &p4v1.Action_Param{ParamId: a.GetParams()[i].GetId(), Value: inCanonical(arg)})
		}
	}
	e.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: call}}
	return e
}

// inCanonical returns a number in P4Runtime's canonical form.
func inCanonical(s string) []byte {
	b := inBytes(s, 64)
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return b
}
