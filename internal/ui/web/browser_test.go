package web

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A browser is a headless chromium, controlled by its debugging protocol over
// two pipes: JSON messages, each terminated by a zero byte.
type browser struct {
	t       *testing.T
	out     *os.File
	in      *bufio.Reader
	last    int
	session string
	// complaints are script errors and failed requests.
	complaints []string
}

// browserPath returns the path of chromium, or skips the test.
func browserPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no chromium on PATH")
	return ""
}

// newBrowser starts chromium, or skips the test.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path := browserPath(t)
	toChild, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, fromChild, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "p4lb-browser-")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	cmd.ExtraFiles = []*os.File{toChild, fromChild} // files 3 and 4 of the child
	// Chromium's child processes write to the profile for a moment after its
	// end. The test kills their process group, and removes the profile until it
	// stays removed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		os.RemoveAll(profile)
		t.Fatal(err)
	}
	toChild.Close()
	fromChild.Close()
	b := &browser{t: t, out: out, in: bufio.NewReader(in)}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		out.Close()
		in.Close()
		for end := time.Now().Add(patience); os.RemoveAll(profile) != nil && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
	})
	in.SetReadDeadline(time.Now().Add(3 * patience))
	b.attach()
	return b
}

// call makes a call and returns its result. It collects the complaints among
// events that arrive before.
func (b *browser) call(method string, params map[string]any) json.RawMessage {
	b.t.Helper()
	b.last++
	request := map[string]any{"id": b.last, "method": method, "params": params}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.out.Write(append(text, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		text, err := b.in.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		switch {
		case m.ID == b.last && m.Error != nil:
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		case m.ID == b.last:
			return m.Result
		case m.Method == "Runtime.exceptionThrown" || m.Method == "Log.entryAdded":
			b.complaints = append(b.complaints, string(m.Params))
		}
	}
}

// attach attaches to the page that the browser has opened.
func (b *browser) attach() {
	var target struct{ TargetID string }
	b.result(b.call("Target.createTarget", map[string]any{"url": "about:blank"}), &target)
	var session struct{ SessionID string }
	b.result(b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &session)
	b.session = session.SessionID
	for _, domain := range []string{"Runtime.enable", "Log.enable", "Page.enable"} {
		b.call(domain, nil)
	}
}

func (b *browser) result(text json.RawMessage, to any) {
	b.t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		b.t.Fatalf("%v: %s", err, text)
	}
}

// eval returns the value of an expression in the page.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.result(b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}), &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return r.Result.Value
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	wait := fmt.Sprintf(`new Promise(done => { const end = Date.now() + %d, look = () => { if (%s) done(true); else if (Date.now() > end) done(false); else setTimeout(look, 20); }; look(); })`,
		patience.Milliseconds(), expression)
	if b.eval(wait) != true {
		b.t.Fatalf("it does not come to %s; the page says: %s", expression, b.eval("document.body.innerText"))
	}
}

// show opens a page in a window of the given width, light or dark.
func (b *browser) show(url string, width int, scheme string) {
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
	b.call("Page.navigate", map[string]any{"url": url})
}

// shoot saves a screenshot of the whole page in the folder P4LB_SCREENSHOTS, if
// set.
func (b *browser) shoot(name string) {
	dir := os.Getenv("P4LB_SCREENSHOTS")
	if dir == "" {
		return
	}
	var r struct{ Data string }
	b.result(b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}), &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o666)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// quiet fails the test if there are complaints.
func (b *browser) quiet() {
	b.t.Helper()
	if len(b.complaints) > 0 {
		b.t.Errorf("the page complains: %s", strings.Join(b.complaints, "\n"))
	}
}
