package embedded_test

import (
	"testing"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/controller/embedded"
)

// TestIdempotent: what is there is not written again, in the same process or by
// another controller.
func TestIdempotent(t *testing.T) {
	for _, scheme := range []string{"qall-poly3", "conga", "hula", "wcmp", "drill+rlb-star", "dhlb"} {
		t.Run(scheme, func(t *testing.T) {
			target := newTarget(t, embedded.Options{Memory: true, Still: true})
			p := planFor(t, scheme, preset(t, "qall"))
			first := deploy(t, p, target, controller.DeployOptions{})
			if first.Written() == 0 || !first.Switches[0].Pushed {
				t.Errorf("the first deployment has written %d objects", first.Written())
			}
			second := deploy(t, p, target, controller.DeployOptions{})
			if n := second.Written(); n != 0 {
				t.Errorf("the second deployment has written %d objects: %+v", n, second.Switches[0].Changes)
			}
		})
	}
}
