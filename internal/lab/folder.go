package lab

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// A folder stores finished runs. Each has its own folder below runs, with its result, flows and
// links. The folder appears under its name only when the run is complete.
type folder struct {
	dir     string
	parquet bool
}

// tempPrefix is the prefix of folders of unfinished runs.
const tempPrefix = ".run-"

func (s *folder) path(j *Job) string {
	return filepath.Join(s.dir, "runs", filepath.FromSlash(j.Name()))
}

// load returns the result of a finished run, or nil.
func (s *folder) load(j *Job) *Result {
	text, err := plain.ReadFile(filepath.Join(s.path(j), resultFile))
	if err != nil {
		return nil
	}
	var r Result
	if json.Unmarshal(text, &r) != nil || r.Spec != j.Key() {
		return nil
	}
	return &r
}

// run runs a job and stores its result.
func (s *folder) run(j *Job, do func(flows, links *os.File) (*Result, error)) (*Result, error) {
	final := s.path(j)
	parent := filepath.Dir(final)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, fileError("making", parent, err)
	}
	temp, err := os.MkdirTemp(parent, tempPrefix)
	if err != nil {
		return nil, fileError("making a folder in", parent, err)
	}
	defer plain.Temp(temp)()
	defer os.RemoveAll(temp)
	r, err := s.fill(temp, do)
	if err != nil {
		return nil, err
	}
	if s.parquet {
		if err := addParquet(temp); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return nil, fileError("keeping", final, err)
	}
	if err := os.RemoveAll(final); err != nil {
		return nil, fileError("replacing", final, err)
	}
	if err := os.Rename(temp, final); err != nil {
		return nil, fileError("keeping", final, err)
	}
	return r, nil
}

// fill writes the files of a run.
func (s *folder) fill(dir string, do func(flows, links *os.File) (*Result, error)) (r *Result, err error) {
	flows, err := os.Create(filepath.Join(dir, flowsFile))
	if err != nil {
		return nil, fileError("writing", flowsFile, err)
	}
	defer func() { err = errors.Join(err, closing(flows)) }()
	links, err := os.Create(filepath.Join(dir, linksFile))
	if err != nil {
		return nil, fileError("writing", linksFile, err)
	}
	defer func() { err = errors.Join(err, closing(links)) }()
	if r, err = do(flows, links); err != nil {
		return nil, diskError(err)
	}
	return r, writeJSON(filepath.Join(dir, resultFile), r)
}
