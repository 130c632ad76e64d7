package play

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/p4lb/p4lb/internal/ui/browser"
)

// opened is a browser with the page of a server.
func opened(t *testing.T) *browser.Browser {
	t.Helper()
	browser.Path(t)
	s, err := New("s3cret")
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	b := browser.New(t)
	b.Show(ts.URL+"/?token=s3cret", 1400, "light")
	b.Until(ready)
	return b
}

// choose selects an option as a user does.
func choose(b *browser.Browser, id, value string) {
	b.Eval(fmt.Sprintf(`(() => { document.querySelector('#checked').textContent = ''; const s = document.getElementById(%q); s.value = %q; s.dispatchEvent(new Event('change')); })()`, id, value))
}

// edit replaces a text in the open file, as typing does.
func edit(t *testing.T, b *browser.Browser, from, to string) {
	t.Helper()
	if b.Eval(fmt.Sprintf(`(() => { const a = document.querySelector('#program textarea'), v = a.value.replace(%q, %q); if (v === a.value) return false; a.value = v; a.oninput(); return true; })()`, from, to)) != true {
		t.Fatalf("the open file has no %q", from)
	}
}

const (
	ready   = `document.documentElement?.dataset.ready === 'yes'`
	checked = `document.querySelector('#checked').textContent`
	says    = `document.querySelector('#alert').textContent`
)

// TestStarts begins with one start of each kind, and changes it.
func TestStarts(t *testing.T) {
	b := opened(t)
	// A row with another block.
	choose(b, "source", "row:drill")
	b.Until(checked + `.includes('compiles for v1model')`)
	choose(b, "b-granularity", "flowlet")
	b.Until(`document.querySelector('#source').value === 'row:flowlet-queue-sampled' && ` + checked + `.includes('compiles')`)
	choose(b, "b-choice", "best-hop")
	b.Until(says + `.includes('best-hop')`)
	choose(b, "source", "row:rps")
	b.Until(`document.querySelector('#files button').dataset.name === 'rps.p4' && ` + checked + `.includes('compiles')`)
	// The changed program in a network, beside the original.
	b.Eval(`(() => { const a = document.querySelector('#program textarea'); a.value = a.value.split('\n').map(l => l.includes('random(meta.slot') ? 'meta.slot = 0;' : l).join('\n'); a.oninput(); })()`)
	b.Until(checked + `.includes('compiles')`)
	b.Eval(`document.querySelector('#to-network').click()`)
	b.Until(`!document.querySelector('#network').hidden && document.querySelector('#yaml textarea').value.includes('schemes: [., rps, ecmp]')`)
	b.Eval(`document.querySelector('#run').click()`)
	b.Until(`document.querySelectorAll('#result figure img').length > 2`)
	if rows := b.Eval(`document.querySelectorAll('#result tbody tr').length`); rows != 3.0 {
		t.Errorf("%v rows, want 3", rows)
	}
	// An example with a manifest.
	b.Eval(`document.querySelector('#tab-write').click()`)
	b.Eval(`window.confirm = () => true`)
	choose(b, "source", "own:twochoice")
	b.Until(checked + `.includes('compiles for v1model') && document.querySelectorAll('#files button').length === 5`)
	b.Eval(`document.querySelector('#files button[data-name="leaf.manifest.yaml"]').click()`)
	b.Until(checked + `.includes('agrees')`)
	edit(t, b, "purpose: route", "purpose: rout")
	b.Until(`document.querySelector('#messages').textContent.includes('rout') && document.querySelectorAll('#program .under').length > 0`)
	// A program without one.
	choose(b, "source", "example:flowlet")
	b.Until(checked + `.includes('compiles for v1model')`)
	b.Eval(`document.querySelector('#to-network').click()`)
	b.Until(`document.querySelectorAll('#files button').length === 2 && ` + checked + `.includes('agrees')`)
	// A block, with an error in its header, and one in its code.
	choose(b, "source", "block:signal-queue")
	b.Until(`document.querySelectorAll('#files button').length >= 3 && ` + checked + `.includes('compiles')`)
	edit(t, b, "kind: signal", "kind: sign")
	b.Until(`document.querySelector('#messages').textContent.includes('2:') && document.querySelectorAll('#program .under').length > 0`)
	edit(t, b, "kind: sign", "kind: signal")
	b.Until(checked + `.includes('compiles')`)
	edit(t, b, `{{.Use "depth" "cost"}}`, "bit<32> cost = nothing;")
	b.Until(`document.querySelector('#messages').textContent.includes('nothing')`)
	b.Shoot("play-block-1400-light")
	edit(t, b, "bit<32> cost = nothing;", `bit<32> cost = (bit<32>)port;`)
	b.Until(checked + `.includes('compiles')`)
	b.Eval(`document.querySelector('#to-network').click()`)
	b.Until(`document.querySelector('#yaml textarea').value.includes('blocks: mine')`)
	b.Eval(`document.querySelector('#run').click()`)
	b.Until(`document.querySelector('#result tbody') && document.querySelector('#result tbody').textContent.includes('my-drill')`)
	// A shared page has the files.
	b.Eval(`document.querySelector('#share').click()`)
	b.Until(`location.hash.startsWith('#s=')`)
	shared, _ := b.Eval(`location.href`).(string)
	b.Show("about:blank", 1400, "light")
	b.Until(`location.href === 'about:blank'`)
	b.Show(shared, 1400, "light")
	b.Until(ready)
	b.Eval(`document.querySelector('#tab-write').click()`)
	b.Until(`document.querySelectorAll('#files button').length >= 3 && document.querySelector('#program textarea').value.includes('bit<32> cost = (bit<32>)port;')`)
	b.Quiet()
}

// TestQuickKeys chooses an entry of a list while the one before is still opened: the list
// keeps the later choice.
func TestQuickKeys(t *testing.T) {
	b := opened(t)
	b.Until(checked + `.includes('compiles')`)
	for id, c := range map[string]struct{ first, later string }{"source": {"row:ecmp", "row:rps"}, "b-granularity": {"flowlet", "flow"}} {
		choose(b, "source", "row:drill")
		b.Until(`document.querySelector('#files button').dataset.name === 'drill.p4' && ` + checked + `.includes('compiles')`)
		// The later choice comes with the first request of the earlier one.
		b.Eval(fmt.Sprintf(`(() => {
			const s = document.getElementById(%q), later = %q, fetched = window.fetch;
			const choose = value => { s.value = value; s.dispatchEvent(new Event('change')); };
			window.seen = [];
			window.fetch = (...args) => {
				window.fetch = fetched;
				choose(later);
				const watch = setInterval(() => window.seen.push(s.value), 1);
				setTimeout(() => { clearInterval(watch); window.seen.push('end'); }, 3000);
				return fetched(...args);
			};
			choose(%q);
		})()`, id, c.later, c.first))
		b.Until(`window.seen.includes('end')`)
		if got := b.Eval(`[...new Set(window.seen)].join(' ')`); got != c.later+" end" {
			t.Errorf("the list %s has shown %v, want %s", id, got, c.later)
		}
	}
	b.Quiet()
}

// TestKeyboard uses the page by keys alone: Tab, arrows, Enter and the keys of the
// editors.
func TestKeyboard(t *testing.T) {
	b := opened(t)
	focus := func(id string) {
		t.Helper()
		for range 90 {
			if b.Eval(`document.activeElement.id`) == id {
				return
			}
			b.Press("Tab")
		}
		t.Fatalf("Tab does not reach %s", id)
	}
	b.Until(checked + `.includes('compiles')`)
	focus("source")
	b.Press("Home", "ArrowDown", "ArrowDown")
	b.Until(`document.querySelector('#files button').dataset.name === 'rps.p4' && ` + checked + `.includes('compiles')`)
	// The editor is left by Tab, and formats by Ctrl+S.
	for range 60 {
		if b.Eval(`document.activeElement.matches('#program textarea')`) == true {
			break
		}
		b.Press("Tab")
	}
	b.Press("x")
	b.Until(checked + `.includes('error')`)
	b.Press("Ctrl+z")
	b.Until(checked + `.includes('compiles')`)
	b.Press("Ctrl+Enter")
	b.Until(`!document.querySelector('#packets').hidden && document.querySelectorAll('#steps li').length > 30`)
	focus("steps")
	b.Press("ArrowDown", "ArrowDown", "ArrowUp", "End")
	if b.Eval(`document.querySelector('#steps').lastChild.getAttribute('aria-current')`) != "step" {
		t.Error("End does not go to the last step")
	}
	focus("tab-packets")
	b.Press("ArrowRight")
	if b.Eval(`document.activeElement.id`) != "tab-network" {
		t.Fatal("the arrow does not change the view")
	}
	focus("run")
	b.Press("Enter")
	b.Until(`document.querySelectorAll('#result figure img').length > 2`)
	focus("tab-network")
	b.Press("ArrowRight")
	for range 10 {
		if b.Eval(`document.activeElement.id`) == "lesson-flows" {
			break
		}
		b.Press("Tab")
	}
	b.Press("ArrowLeft", "Tab", "Enter")
	b.Until(`document.querySelectorAll('#learn .player svg').length > 0`)
	if got := b.Eval(`document.querySelector('#lesson-flows').value`); got != "30" {
		t.Errorf("the slider has %v, want 30", got)
	}
	b.Quiet()
}
