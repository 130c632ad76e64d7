package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// advisory describes a vulnerability of fmt.Println in every version of Go.
const advisory = `{"schema_version":"1.3.1","id":"GO-2000-0001","modified":"2000-01-01T00:00:00Z","published":"2000-01-01T00:00:00Z","summary":"Println prints","details":"Println prints.","database_specific":{"url":"https://pkg.go.dev/vuln/GO-2000-0001"},
"affected":[{"package":{"name":"stdlib","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
"ecosystem_specific":{"imports":[{"path":"fmt","symbols":["Println"]}]}}]}`

// write makes the files of a folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFindings checks a module that calls a vulnerable function, and one that
// does not.
func TestFindings(t *testing.T) {
	database := "file://" + write(t, map[string]string{
		"index/db.json":        `{"modified":"2000-01-01T00:00:00Z"}`,
		"index/modules.json":   `[{"path":"stdlib","vulns":[{"id":"GO-2000-0001","modified":"2000-01-01T00:00:00Z"}]}]`,
		"index/vulns.json":     `[{"id":"GO-2000-0001","modified":"2000-01-01T00:00:00Z"}]`,
		"ID/GO-2000-0001.json": advisory,
	})
	for _, c := range []struct {
		call, want string
		status     int
	}{
		{`fmt.Println("one")`, "GO-2000-0001", 3},
		{`fmt.Print("one")`, "Your code is affected by 0 vulnerabilities", 0},
	} {
		dir := write(t, map[string]string{
			"go.mod":  "module example.com/one\n\ngo 1.26.0\n",
			"main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { " + c.call + " }\n",
		})
		var out, errs strings.Builder
		if got := run(database, []string{"-C", dir, "./..."}, &out, &errs); got != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: status %d, want %d and %q:\n%s%s", c.call, got, c.status, c.want, &out, &errs)
		}
	}
}

// TestUnreachable checks that a database that does not answer is one line and
// no failure.
func TestUnreachable(t *testing.T) {
	broken := httptest.NewServer(http.NotFoundHandler())
	defer broken.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for url, reason := range map[string]string{
		broken.URL: "index/db.json: 404 Not Found",
		closed.URL: "connection refused",
	} {
		var out, errs strings.Builder
		if got := run(url, []string{"./..."}, &out, &errs); got != 0 || errs.String() != "" {
			t.Errorf("status %d, %q", got, &errs)
		}
		line, rest, _ := strings.Cut(out.String(), "\n")
		if rest != "" || !strings.HasPrefix(line, "vulnerabilities not checked: "+url) || !strings.Contains(line, reason) {
			t.Errorf("got %q, want one line with %q", &out, reason)
		}
	}
}

// TestFolderMissing checks that a database in a missing folder is an error.
func TestFolderMissing(t *testing.T) {
	var out, errs strings.Builder
	if got := run("file:///nonexistent/database", []string{"./..."}, &out, &errs); got == 0 || errs.String() == "" {
		t.Errorf("status %d, errors %q: want a failure", got, &errs)
	}
}
