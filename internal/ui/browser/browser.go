//go:build unix

// Package browser drives a headless chromium in tests of pages. Tests skip if there
// is no chromium.
package browser

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

// patience is how long a test waits for a condition.
const patience = 3 * time.Minute

// A Browser is a headless chromium, controlled by its debugging protocol over
// two pipes: JSON messages, each terminated by a zero byte.
type Browser struct {
	t       testing.TB
	out     *os.File
	in      *bufio.Reader
	last    int
	session string
	// Complaints are the script errors and failed requests so far.
	Complaints []string
}

// Path returns the path of chromium, or skips the test.
func Path(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no chromium on PATH")
	return ""
}

// New starts chromium with additional flags, or skips the test.
func New(t testing.TB, flags ...string) *Browser {
	t.Helper()
	path := Path(t)
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
	flags = append(flags, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	cmd := exec.Command(path, flags...)
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
	b := &Browser{t: t, out: out, in: bufio.NewReader(in)}
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

// Call makes a call and returns its result. It also records Complaints from events
// that arrive before the result.
func (b *Browser) Call(method string, params map[string]any) json.RawMessage {
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
			b.Complaints = append(b.Complaints, string(m.Params))
		}
	}
}

// attach attaches to the browser's open page.
func (b *Browser) attach() {
	var target struct{ TargetID string }
	b.result(b.Call("Target.createTarget", map[string]any{"url": "about:blank"}), &target)
	var session struct{ SessionID string }
	b.result(b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &session)
	b.session = session.SessionID
	for _, domain := range []string{"Runtime.enable", "Log.enable", "Page.enable"} {
		b.Call(domain, nil)
	}
}

func (b *Browser) result(text json.RawMessage, to any) {
	b.t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		b.t.Fatalf("%v: %s", err, text)
	}
}

// Eval returns the value of an expression in the page.
func (b *Browser) Eval(expression string) any {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.result(b.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}), &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return r.Result.Value
}

// Until waits until an expression in the page is true.
func (b *Browser) Until(expression string) {
	b.t.Helper()
	wait := fmt.Sprintf(`new Promise(done => { const end = Date.now() + %d, look = () => { if (%s) done(true); else if (Date.now() > end) done(false); else setTimeout(look, 20); }; look(); })`,
		patience.Milliseconds(), expression)
	if b.Eval(wait) != true {
		b.t.Fatalf("%s: not true in time; the page says: %s", expression, b.Eval("document.querySelector('main').innerText.slice(-600) + document.querySelector('header').nextElementSibling.innerText + (document.querySelector('#alert')?.textContent || '')"))
	}
}

// keyCodes are the codes of keys that have no character.
var keyCodes = map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}

// Press presses keys one after the other: Tab, Enter, ArrowRight and so on, or a
// character. Ctrl+ and Shift+ before the name hold these keys.
func (b *Browser) Press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		modifiers := 0
		for name, bit := range map[string]int{"Ctrl+": 2, "Shift+": 8} {
			if rest, ok := strings.CutPrefix(key, name); ok {
				key, modifiers = rest, bit
			}
		}
		event := map[string]any{"key": key, "code": key, "modifiers": modifiers, "windowsVirtualKeyCode": keyCodes[key]}
		switch {
		case keyCodes[key] == 0 && modifiers == 0:
			event["text"] = key
		case keyCodes[key] == 0:
			event["windowsVirtualKeyCode"] = int(strings.ToUpper(key)[0])
		case key == "Enter" && modifiers == 0:
			event["text"] = "\r"
		case key == " ":
			event["text"] = " "
		}
		for _, kind := range []string{"keyDown", "keyUp"} {
			event["type"] = kind
			b.Call("Input.dispatchKeyEvent", event)
			delete(event, "text")
		}
	}
}

// Show opens a page in a window of the given width, with the colour scheme light or
// dark.
func (b *Browser) Show(url string, width int, scheme string) {
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})
	b.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
	b.Call("Page.navigate", map[string]any{"url": url})
}

// Shoot saves a screenshot of the whole page in the folder P4LB_SCREENSHOTS, if
// set.
func (b *Browser) Shoot(name string) {
	dir := os.Getenv("P4LB_SCREENSHOTS")
	if dir == "" {
		return
	}
	var r struct{ Data string }
	b.result(b.Call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}), &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o666)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// Quiet fails the test if there are Complaints.
func (b *Browser) Quiet() {
	b.t.Helper()
	if len(b.Complaints) > 0 {
		b.t.Errorf("complaints of the page: %s", strings.Join(b.Complaints, "\n"))
	}
}
