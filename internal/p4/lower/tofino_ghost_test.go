package lower

import (
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/p4test"
)

// TestTofinoGhost: the ghost thread's control becomes a pipeline with metadata of
// its own, which ingress may ask for as well.
func TestTofinoGhost(t *testing.T) {
	const control = `control G(in ghost_intrinsic_metadata_t gh) {
    Register<bit<18>, bit<11>>(2048) lengths;
    action note() { lengths.write(gh.qid, gh.qlength); }
    table watched { key = { gh.qid: exact; } actions = { note; } }
    apply { BODY }
}
Pipeline(IP(), I(), ID(), EP(), E(), ED()`
	for body, pingPong := range map[string]bool{
		"watched.apply();": false,
		"if (gh.ping_pong == 0) { watched.apply(); }": true,
	} {
		program := strings.NewReplacer(
			"Pipeline(IP(), I(), ID(), EP(), E(), ED()", strings.Replace(control, "BODY", body, 1)+", G()",
			"inout ingress_intrinsic_metadata_for_tm_t tm)", "inout ingress_intrinsic_metadata_for_tm_t tm, in ghost_intrinsic_metadata_t gh)",
		).Replace(string(tofinoProgram(bmv2.T2NA, map[string]string{"ingress.p4": "apply { m.y = 5w0 ++ gh.qid; }"})))
		file, info := p4test.Check(t, []byte(program))
		cfg, errs := Lower(file, info, Options{Arch: bmv2.T2NA})
		if errs.Err() != nil {
			t.Fatal(errs)
		}
		ghost := cfg.Pipelines[len(cfg.Pipelines)-1]
		if ghost.Name != "ghost" || ghost.PingPong != pingPong || len(ghost.Tables) != 1 || ghost.Tables[0].Name != "G.watched" {
			t.Errorf("with %s it becomes %+v", body, ghost)
		}
		for _, p := range cfg.Pipelines[:2] {
			if p.PingPong {
				t.Errorf("%s looks at ping_pong", p.Name)
			}
		}
		if text := listing(cfg); !strings.Contains(text, "gh_intr_md.qlength") {
			t.Error(text)
		}
	}
}
