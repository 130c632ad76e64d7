package page_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/ui/browser"
)

// opened is a browser with the page at a part of its address.
func opened(t *testing.T, hash string, flags ...string) *browser.Browser {
	t.Helper()
	browser.Path(t)
	url := serve(t, site(t))
	b := browser.New(t, flags...)
	b.Show(url+hash, 1400, "light")
	b.Until(`document.documentElement && ` + ready)
	return b
}

// choose selects an option as a user does.
func choose(b *browser.Browser, id, value string) {
	b.Eval(fmt.Sprintf(`(() => { const s = document.getElementById(%q); s.value = %q; s.dispatchEvent(new Event('change')); })()`, id, value))
}

const (
	checked = `document.querySelector('#checked').textContent`
	says    = `document.querySelector('#alert').textContent`
	status  = `document.querySelector('#state').textContent`
)

// TestStop stops a long run; the page runs the next one.
func TestStop(t *testing.T) {
	b := opened(t, "#network")
	b.Eval(`(() => { const a = document.querySelector('#yaml textarea'); a.value = a.value.replace('duration: 25ms', 'duration: 5s'); a.oninput(); document.querySelector('#run').click(); })()`)
	b.Until(`!document.querySelector('#stop').hidden && ` + status + `.includes('Running')`)
	time.Sleep(500 * time.Millisecond) // within the first run
	began := time.Now()
	b.Eval(`document.querySelector('#stop').click()`)
	b.Until(`document.querySelector('#stop').hidden`)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("stopping took %v", took)
	}
	b.Eval(`(() => { const a = document.querySelector('#yaml textarea'); a.value = a.value.replace('duration: 5s', 'duration: 15ms'); a.oninput(); document.querySelector('#run').click(); })()`)
	b.Until(`document.querySelectorAll('#result figure img').length > 2`)
	b.Quiet()
}

// TestWithoutWebAssembly opens the page in a browser without WebAssembly: it explains
// that.
func TestWithoutWebAssembly(t *testing.T) {
	browser.Path(t)
	url := serve(t, site(t))
	b := browser.New(t, "--js-flags=--jitless")
	b.Show(url, 1400, "light")
	b.Until(`document.documentElement && document.documentElement.dataset.ready === 'failed'`)
	if got, _ := b.Eval(says).(string); !strings.Contains(got, "no WebAssembly") {
		t.Errorf("the page says %q", got)
	}
	b.Quiet()
}

// TestTooMuch: a program that loops and a network of a million hosts are explained, and
// the page works on.
func TestTooMuch(t *testing.T) {
	b := opened(t, "#network")
	for _, c := range [][2]string{
		{"topology: {leaf-spine: {leaves: 1000, spines: 16, hosts: 1000, rate: 1G, host-rate: 1G}}\nschemes: [ecmp]\ntraffic: [{workload: websearch}]\nduration: 10ms\n", "hosts"},
		{"topology: {fat-tree: {k: 128, rate: 1G, host-rate: 1G}}\nschemes: [ecmp]\ntraffic: [{workload: websearch}]\nduration: 10ms\n", "544768 nodes"},
		{"topology: {fat-tree: {k: 44, rate: 1G, host-rate: 1G}}\nschemes: [ecmp]\ntraffic: [{workload: websearch}]\nduration: 10ms\n", "23716 nodes"},

		{"topology: {leaf-spine: {leaves: 4, spines: 4, hosts: 16, rate: 1G, host-rate: 1G}}\nschemes: [ecmp]\ntraffic: [{workload: websearch}]\nduration: 900s\n", "too large"},
	} {
		b.Eval(fmt.Sprintf(`(() => { document.querySelector('#alert').textContent = ''; const a = document.querySelector('#yaml textarea'); a.value = %q; a.oninput(); document.querySelector('#run').click(); })()`, c[0]))
		b.Until(`document.querySelector('#stop').hidden && ` + says + ` !== ''`)
		got, _ := b.Eval(says).(string)
		if !strings.Contains(got, c[1]) {
			t.Errorf("%.60q: %q, want %q", c[0], got, c[1])
		}
		t.Log(got)
	}
	b.Eval(`window.confirm = () => true`)
	choose(b, "source", "example:reflector")
	b.Until(checked + `.includes('compiles')`)
	b.Eval(fmt.Sprintf(`(() => { const a = document.querySelector('#program textarea'); a.value = %q; a.oninput(); const t = document.querySelector('#test textarea'); t.value = 'packet 1 0011223344556677'; t.oninput(); document.querySelector('#tab-packets').click(); })()`, looping))
	b.Eval(`document.querySelector('#walk').click()`)
	b.Until(`document.querySelector('#walk-title').textContent.includes('left out') || ` + says + `.includes('recirculat')`)
	t.Log(b.Eval(`document.querySelector('#walk-title').textContent`), b.Eval(says))
	choose(b, "experiment", "quick")
	b.Eval(`document.querySelector('#tab-network').click(); document.querySelector('#run').click()`)
	b.Until(`document.querySelectorAll('#result figure img').length > 2`)
	b.Quiet()
}

// looping is a program that recirculates each packet forever.
const looping = `#include <core.p4>
#include <v1model.p4>
struct H {}
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) { apply { s.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { recirculate_preserving_field_list(0); } }
control C(inout H h, inout M m) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
`

// TestPolicy: the page allows its own scripts and WebAssembly alone, and loads nothing
// from elsewhere.
func TestPolicy(t *testing.T) {
	b := opened(t, "")
	const want = `default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'`
	if got := b.Eval(`document.querySelector('meta[http-equiv=Content-Security-Policy]').content`); got != want {
		t.Errorf("policy %v", got)
	}
	b.Eval(`(() => { const s = document.createElement('script'); s.textContent = 'window.inline = 1'; document.body.append(s); })()`)
	if b.Eval(`window.inline`) != nil {
		t.Error("an inline script ran")
	}
	if len(b.Complaints) == 0 {
		t.Error("the browser did not report the inline script")
	}
	if b.Eval(`fetch('http://127.0.0.1:1/').then(() => 'fetched', e => e.message)`) == "fetched" {
		t.Error("the page reached another host")
	}
	if got := b.Eval(`performance.getEntriesByType('resource').filter(r => !r.name.startsWith(location.origin) && !r.name.startsWith('data:')).length`); got != 0.0 {
		t.Errorf("%v resources from elsewhere", got)
	}
}
