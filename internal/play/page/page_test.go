package page_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/play/page"
	"github.com/p4lb/p4lb/internal/ui/browser"
)

// maxSize is the largest size of the compressed engine.
const maxSize = 8 << 20

// site writes the page with its engine into a folder, as make site does.
func site(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the engine for WebAssembly, without the race detector")
	}
	dir := t.TempDir()
	if err := page.Write(dir, "../../.."); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSize builds the engine.
func TestSize(t *testing.T) {
	dir := site(t)
	info, err := os.Stat(filepath.Join(dir, "p4lb.wasm.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxSize {
		t.Errorf("the engine has %d bytes compressed, want at most %d", info.Size(), maxSize)
	}
	t.Logf("%d bytes compressed", info.Size())
}

// serve serves a folder.
func serve(t *testing.T, dir string) string {
	s := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(s.Close)
	return s.URL + "/"
}

const ready = `document.documentElement.dataset.ready === "yes"`

// TestPage uses every view on a desktop and a phone screen, light and dark.
func TestPage(t *testing.T) {
	browser.Path(t)
	url := serve(t, site(t))
	b := browser.New(t)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{390, 1400} {
			name := func(view string) string { return fmt.Sprintf("play-%s-%d-%s", view, width, scheme) }
			fits := func(view string) {
				t.Helper()
				if got := b.Eval(`document.documentElement.scrollWidth`); got != float64(width) {
					t.Errorf("%s: at %d the page is %v wide", view, width, got)
				}
				b.Shoot(name(view))
			}
			began := time.Now()
			b.Show(url+"?"+name("")+"#program=qall-poly3", width, scheme)
			b.Until(ready)
			t.Logf("usable after %v", time.Since(began).Round(time.Millisecond))
			b.Until(`document.querySelector("#checked").textContent.includes("compiles for v1model")`)
			fits("write")

			b.Eval(`document.querySelector("#tab-packets").click()`)
			b.Until(`document.querySelector("#test textarea").value.includes("packet 1")`)
			b.Eval(`document.querySelector("#walk").click()`)
			b.Until(`document.querySelectorAll("#steps li").length > 50`)
			b.Eval(`for (let i = 0; i < 6; i++) document.querySelector("#next").click()`)
			fits("packets")

			b.Eval(`document.querySelector("#tab-network").click()`)
			began = time.Now()
			b.Eval(`document.querySelector("#run").click()`)
			b.Until(`document.querySelectorAll("#result figure img").length > 2`)
			t.Logf("the default experiment took %v", time.Since(began).Round(time.Millisecond))
			b.Until(`[...document.querySelectorAll("#result img")].every(i => i.complete && i.naturalWidth > 0)`)
			fits("network")

			b.Eval(`document.querySelector("#tab-learn").click()`)
			b.Eval(`document.querySelector("#learn .live button").click()`)
			b.Until(`document.querySelectorAll("#learn .player svg").length > 0`)
			fits("learn")
		}
	}
	b.Quiet()
}

var _ = exec.Command
var _ = gzip.BestCompression
var _ = runtime.GOROOT
