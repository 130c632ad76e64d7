package page_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/play"
	"github.com/p4lb/p4lb/internal/play/page"
	"github.com/p4lb/p4lb/internal/ui/browser"
)

// maxSize is the largest size of the compressed engine.
const maxSize = 8 << 20

// site is a folder with the page and its engine, as make site writes them. It is written
// once for all tests.
func site(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the engine for WebAssembly, without the race detector")
	}
	dir, err := written()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var folder string // of written; "": it has not been called

var written = sync.OnceValues(func() (string, error) {
	var err error
	if folder, err = os.MkdirTemp("", "p4lb-play-"); err != nil {
		return "", err
	}
	// Test binaries have no version, so the engine is built without one.
	os.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -buildvcs=false"))
	return folder, page.Write(folder, "../../..")
})

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		os.RemoveAll(folder)
	}
	os.Exit(code)
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

const ready = `document.documentElement?.dataset.ready === "yes"`

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
			if width > 1000 && scheme == "light" {
				b.Eval(`document.querySelector("#learn .live button").click()`)
				b.Until(`document.querySelectorAll("#learn .player svg").length > 0`)
			}
			fits("learn")
		}
	}
	b.Quiet()
}

// heavy lists modules and packages that the engine must not link.
var heavy = []string{"google.golang.org/grpc", "net/http", "crypto/tls", "github.com/parquet-go", "github.com/apache/thrift", "github.com/vishvananda", "github.com/spf13/cobra"}

// TestImports lists the packages of the engine.
func TestImports(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./internal/play/worker")
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		for _, h := range heavy {
			if name == h || strings.HasPrefix(name, h+"/") {
				t.Errorf("the engine links %s", name)
			}
		}
	}
}

// script calls the engine under node with the requests of its input, and writes the
// answers to a file, one per line.
const script = `const fs = require('fs'), zlib = require('zlib'); require(process.argv[2] + '/wasm_exec.js');
(async () => {
  const go = new Go(), started = new Promise(done => { globalThis.p4lbReady = done; });
  const wasm = await WebAssembly.instantiate(zlib.gunzipSync(fs.readFileSync(process.argv[2] + '/p4lb.wasm.gz')), go.importObject);
  go.run(wasm.instance); await started;
  let all = '';
  for (const [name, q] of JSON.parse(fs.readFileSync(0, 'utf8')))
    all += await new Promise(done => p4lbCall(name, JSON.stringify(q), () => {}, done));
  fs.writeFileSync(process.argv[3], all);
  process.exit(0);
})();`

// TestEngine compares the engine under node with this process: the answers are equal.
func TestEngine(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node on PATH")
	}
	dir := site(t)
	const experiment = "topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 400M, host-rate: 1G, delay: 10us, host-delay: 10us, queue: 64}}\nschemes: [drill, ecmp]\ntraffic: [{workload: websearch, cut: 100KB}]\nseeds: 2\nduration: 15ms\nfaults:\n  - {at: 5ms, until: 9ms, link: l1-s1, down: true}\n"
	requests := [][2]any{
		{"generate", map[string]any{"name": "qall-poly3"}},
		{"setup", map[string]any{"name": "drill"}},
		{"check", map[string]any{"name": "x.p4", "text": "#include <core.p4>\nconst bit<8> x = y;\n"}},
		{"run", map[string]any{"yaml": experiment}},
	}
	file := filepath.Join(t.TempDir(), "call.js")
	if err := os.WriteFile(file, []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(requests)
	if err != nil {
		t.Fatal(err)
	}
	answers := filepath.Join(t.TempDir(), "answers")
	cmd := exec.Command(node, file, dir, answers)
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("node: %v: %s", err, out)
	}
	out, err := os.ReadFile(answers)
	if err != nil {
		t.Fatal(err)
	}
	seconds := regexp.MustCompile(`"seconds":[0-9.e-]+|p4lb [^"\\<]*devel[^"\\<]*|p4lb \([^)]*\)`)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(requests) {
		t.Fatalf("%d answers of %d", len(lines), len(requests))
	}
	for i, r := range requests {
		q, err := json.Marshal(r[1])
		if err != nil {
			t.Fatal(err)
		}
		want := strings.TrimSpace(string(play.Call(t.Context(), r[0].(string), q, nil)))
		if got := seconds.ReplaceAllString(lines[i], ""); got != seconds.ReplaceAllString(want, "") {
			t.Errorf("%s: under node %.300s, want %.300s", r[0], lines[i], want)
		}
	}
}

// TestBadAddresses: the page explains a bad address, and stays alive.
func TestBadAddresses(t *testing.T) {
	browser.Path(t)
	url := serve(t, site(t))
	b := browser.New(t)
	for _, c := range [][2]string{
		{"s=AAAA!!", "damaged"},
		{"s=" + strings.Repeat("A", 70000), "too long"},
		{"program=nothing", "scheme \"nothing\""},
		{"hello", "names nothing"},
	} {
		b.Show("about:blank", 1400, "light")
		b.Until(`location.href === "about:blank"`)
		b.Show(url+"#"+c[0], 1400, "light")
		b.Until(`document.documentElement && ` + ready)
		if got, _ := b.Eval(`document.querySelector("#alert").textContent`).(string); !strings.Contains(got, c[1]) {
			t.Errorf("#%.20s: %q, want %q", c[0], got, c[1])
		}
		if b.Eval(`document.querySelector("#program textarea").value.length > 1000`) != true {
			t.Errorf("#%.20s: there is no program", c[0])
		}
	}
	// A shared page opens with the same content.
	b.Eval(`document.querySelector("#tab-network").click(); document.querySelector("#yaml textarea").value = "name: shared\n"; document.querySelector("#share").click()`)
	b.Until(`location.hash.startsWith("#s=")`)
	shared, _ := b.Eval(`location.href`).(string)
	b.Show("about:blank", 1400, "light")
	b.Until(`location.href === "about:blank"`)
	b.Show(shared, 1400, "light")
	b.Until(`document.documentElement && ` + ready)
	if b.Eval(`document.querySelector("#yaml textarea").value`) != "name: shared\n" || b.Eval(`document.querySelector("#network").hidden`) != false {
		t.Error("the shared page opens otherwise")
	}
	// A broken program is underlined.
	b.Eval(`document.querySelector("#tab-write").click(); const a = document.querySelector("#program textarea"); a.value = "#include <core.p4>\nconst bit<8> x = y;\n"; a.oninput()`)
	b.Until(`document.querySelectorAll("#program .under").length > 0 && document.querySelectorAll("#messages li").length > 0`)
	b.Shoot("play-error-1400-light")
	b.Quiet()
}
