package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// oneJob returns the job of an experiment with one run.
func oneJob(t *testing.T) *Job {
	t.Helper()
	jobs, err := (&Runner{}).Jobs(load(t, fmt.Sprintf(oneRun, "ecmp")))
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	return jobs[0]
}

// write writes a file, and creates its folder.
func write(t *testing.T, name, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o777)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFolderOfARun: the folder of a run appears when all of its files are complete. A run that
// fails, or whose files cannot be written, leaves an earlier result as it was, and no remains.
func TestFolderOfARun(t *testing.T) {
	j, dir := oneJob(t), t.TempDir()
	s := &folder{dir: dir}
	if s.load(j) != nil {
		t.Fatal("an empty folder has a result")
	}
	final := filepath.Join(dir, "runs", filepath.FromSlash(j.Name()))
	do := func(hops int64) func(flows, links *os.File) (*Result, error) {
		return func(flows, links *os.File) (*Result, error) {
			if _, err := os.Stat(final); (err == nil) != (hops > 1) {
				t.Errorf("while run %d is under way: %v", hops, err)
			}
			fmt.Fprintf(flows, "bytes\n%d\n", hops)
			fmt.Fprintf(links, "bytes\n%d\n", 10*hops)
			return &Result{Spec: j.Key(), Hops: hops}, nil
		}
	}
	for hops := range int64(2) {
		if r, err := s.run(j, do(hops+1)); err != nil || r.Hops != hops+1 {
			t.Fatalf("%+v, %v", r, err)
		}
		if r := s.load(j); r == nil || r.Hops != hops+1 {
			t.Errorf("loaded %+v", r)
		}
	}
	if info, err := os.Stat(final); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	whole := tree(t, dir)
	if len(whole) != 3 || whole[filepath.Join("runs", filepath.FromSlash(j.Name()), flowsFile)] != "bytes\n2\n" {
		t.Errorf("%q", whole)
	}
	wrong := errors.New("no run")
	for name, c := range map[string]struct {
		do   func(flows, links *os.File) (*Result, error)
		want string
	}{
		"a failed run":       {func(_, _ *os.File) (*Result, error) { return nil, wrong }, "no run"},
		"a lost folder":      {func(f, _ *os.File) (*Result, error) { return &Result{}, os.RemoveAll(filepath.Dir(f.Name())) }, resultFile + ": no such file or directory"},
		"a table of nothing": {func(_, _ *os.File) (*Result, error) { return &Result{}, nil }, "EOF"},
		"a broken table": {func(f, l *os.File) (*Result, error) {
			fmt.Fprint(f, "a,b\n1\n")
			fmt.Fprint(l, "a\n1\n")
			return &Result{}, nil
		}, "wrong number of fields"},
		"a broken second table": {func(f, l *os.File) (*Result, error) {
			fmt.Fprint(f, "a\n1\n")
			fmt.Fprint(l, "a,b\n1\n")
			return &Result{}, nil
		}, "wrong number of fields"},
	} {
		p := &folder{dir: dir, parquet: true}
		if r, err := p.run(j, c.do); r != nil || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %+v, %v: want %s", name, r, err, c.want)
		}
		if after := tree(t, dir); fmt.Sprint(after) != fmt.Sprint(whole) {
			t.Errorf("%s leaves %q", name, after)
		}
	}
	// Results of something else do not count.
	for _, text := range []string{"", "{", `{"spec": "other"}`, "[]"} {
		write(t, filepath.Join(final, resultFile), text)
		if r := s.load(j); r != nil {
			t.Errorf("%q is loaded as %+v", text, r)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	if _, err := (&folder{dir: file}).run(j, do(1)); err == nil || !strings.HasPrefix(err.Error(), "making "+file) || !strings.HasSuffix(err.Error(), ": not a directory") {
		t.Errorf("a file instead of the folder: %v", err)
	}
}

// TestRemainsOfRuns: an experiment removes the runs that the manifest of its folder names, and
// unfinished ones. If it continues, finished runs stay. It never removes files outside of runs.
func TestRemainsOfRuns(t *testing.T) {
	const manifest = `{"format": "p4lb-lab 1", "runs": ["a/ecmp/1", "a/rps/1", "b/1", "../keep", ".", "/runs/c"]}`
	for _, c := range []struct {
		resume bool
		want   []string
	}{
		{false, []string{"keep/x", "manifest.json", "runs/a/rps/2/result.json", "runs/c/result.json"}},
		{true, []string{"keep/x", "manifest.json", "runs/a/ecmp/1/result.json", "runs/a/rps/1/result.json", "runs/a/rps/2/result.json", "runs/b/1/result.json", "runs/c/result.json"}},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, manifestFile), manifest)
		for _, name := range []string{"a/ecmp/1", "a/rps/1", "a/rps/2", "b/1", "c", tempPrefix + "1", "a/rps/" + tempPrefix + "22"} {
			write(t, filepath.Join(dir, "runs", name, resultFile), "{}")
		}
		write(t, filepath.Join(dir, "keep", "x"), "")
		r := &Runner{Dir: dir, Resume: c.resume}
		if err := r.clean(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for name := range tree(t, dir) {
			got = append(got, filepath.ToSlash(name))
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("resume %v leaves %q, want %q", c.resume, got, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "runs", "b")); (err == nil) != c.resume {
			t.Errorf("resume %v: the empty folder b: %v", c.resume, err)
		}
	}
}

// TestFilesInTheWay: errors about folders of results name the folder or file.
func TestFilesInTheWay(t *testing.T) {
	x := load(t, fmt.Sprintf(oneRun, "ecmp"))
	keep := func(dir string) error {
		_, err := newComparison(x, nil, nil).Keep(dir, Origin{})
		return err
	}
	list := func(dir string) (err error) {
		_, err = (&Archive{Dir: dir}).List(t.Context(), func(e error) { err = e })
		return err
	}
	for name, c := range map[string]struct {
		files map[string]string
		do    func(dir string) error
		want  string
	}{
		"a file as folder of results": {map[string]string{"d": ""}, func(dir string) error { return (&Runner{Dir: dir + "/d"}).keepManifest(x, nil) }, "making DIR/d: not a directory"},
		"a file as folder of runs": {map[string]string{manifestFile: `{"format": "p4lb-lab 1", "runs": ["a"]}`, "runs": ""}, func(dir string) error {
			return (&Runner{Dir: dir}).keepManifest(x, nil)
		}, "reading DIR/runs: not a directory"},
		"another manifest": {map[string]string{manifestFile: `{"format": "p4lb-lab 2", "runs": []}`, "runs/a": ""}, func(dir string) error {
			return (&Runner{Dir: dir}).keepManifest(x, nil)
		}, "DIR holds runs and no manifest.json: want another folder"},
		"a file as folder of figures": {map[string]string{"plots": ""}, keep, "making DIR/plots: not a directory"},
		"a folder as report":          {map[string]string{"report.html/a": ""}, keep, "writing DIR/report.html: is a folder, not a file"},
		"no archive":                  {nil, func(dir string) error { return list(dir + "/none") }, "reading DIR/none: no such file or directory"},
		"a file as archive":           {map[string]string{"a": ""}, func(dir string) error { return list(dir + "/a") }, "reading DIR/a: not a directory"},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			write(t, filepath.Join(dir, file), text)
		}
		want := strings.ReplaceAll(c.want, "DIR", dir)
		if err := c.do(dir); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	// One experiment that cannot be read does not hide the others.
	dir := t.TempDir()
	write(t, filepath.Join(dir, "broken", keptFile, "file"), "")
	write(t, filepath.Join(dir, "other", "file"), "")
	write(t, filepath.Join(dir, "file"), "")
	k, err := described(x)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Runner{Dir: filepath.Join(dir, k.ID())}).KeepExperiment(t.Context(), k); err == nil {
		t.Error("a description without its folder is no error")
	}
	if err := os.Mkdir(filepath.Join(dir, k.ID()), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := (&Runner{Dir: filepath.Join(dir, k.ID())}).KeepExperiment(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	a := &Archive{Dir: dir}
	all, err := a.List(t.Context(), func(err error) { warnings = append(warnings, err.Error()) })
	if want := "reading " + filepath.Join(dir, "broken", keptFile) + ": is a folder, not a file"; err != nil || len(all) != 1 || all[0].ID() != k.ID() || len(warnings) != 1 || warnings[0] != want {
		t.Errorf("%d experiments, %q, %v: want %s", len(all), warnings, err, want)
	}
	if len(k.Runs) != 1 {
		t.Fatalf("%d runs", len(k.Runs))
	}
	all[0].entry = k.ID()
	if r, err := a.Result(t.Context(), all[0], k.Runs[0]); r != nil || err != nil {
		t.Errorf("a missing run: %+v, %v", r, err)
	}
	write(t, filepath.Join(a.folderOf(all[0], k.Runs[0]), resultFile, "x"), "")
	if r, err := a.Result(t.Context(), all[0], k.Runs[0]); r != nil || err == nil || !strings.HasPrefix(err.Error(), "reading ") || !strings.HasSuffix(err.Error(), resultFile+": is a folder, not a file") {
		t.Errorf("a folder as result: %+v, %v", r, err)
	}
}
