package store

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Prune removes runs with keys not in needed, experiments and job notes with
// names not in experiments, tables without a run, leases of finished runs or of dead
// workers, and dead workers. It calls each with every removed name; with dryRun it
// removes nothing. A live worker may have stored tables that do not belong to a run
// yet. If there is one, the error is a *HeldError, unless force is set.
func (s *Store) Prune(ctx context.Context, needed, experiments map[string]bool, dryRun, force bool, each func(name string)) error {
	w := &Worker{s: s, now: time.Now, seen: map[string]sighting{}}
	w.owner.Place = place()
	drop := func(name string) error {
		each(name)
		if dryRun {
			return nil
		}
		return s.b.remove(ctx, name)
	}
	var all []string
	if err := s.b.list(ctx, "", func(o Object) error { all = append(all, o.Name); return nil }); err != nil {
		return err
	}
	for _, name := range all {
		if id, ok := strings.CutPrefix(name, "owners/"); ok && !force {
			if held, err := w.alive(ctx, id); held != nil || err != nil {
				return errors.Join(err, asError(held))
			}
		}
	}
	tables, err := s.pruneRuns(ctx, all, needed, drop)
	if err != nil {
		return err
	}
	for _, name := range all {
		kind, rest, _ := strings.Cut(name, "/")
		first, _, _ := strings.Cut(rest, "/")
		gone := false
		switch kind {
		case "tables":
			gone = !tables[name]
		case "experiments", "submissions":
			gone = !experiments[first]
		case "leases", "owners":
			if kind == "leases" {
				text, err := read(ctx, s.b, name, 1<<10)
				if isMissing(err) {
					continue
				}
				if err != nil {
					return err
				}
				first = string(text)
			}
			held, err := w.alive(ctx, first)
			if err != nil {
				return err
			}
			gone = held == nil
		}
		if gone {
			if err := drop(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// pruneRuns drops damaged runs and runs that are not needed. It returns the names of the
// tables of the other runs.
func (s *Store) pruneRuns(ctx context.Context, all []string, needed map[string]bool, drop func(name string) error) (map[string]bool, error) {
	tables := map[string]bool{}
	for _, name := range all {
		key, isRun := strings.CutSuffix(name[strings.LastIndexByte(name, '/')+1:], ".run")
		if !strings.HasPrefix(name, "runs/") || !isRun {
			continue
		}
		if !IsKey(key) {
			if err := drop(name); err != nil {
				return nil, err
			}
			continue
		}
		run, err := s.Get(ctx, key)
		var damaged *DamagedError
		switch {
		case needed[key] && err == nil:
			for _, t := range run.Tables {
				tables[t.name()] = true
			}
		case needed[key] && !errors.As(err, &damaged) && !errors.Is(err, ErrMissing):
			return nil, err
		default:
			if err := drop(name); err != nil {
				return nil, err
			}
		}
	}
	return tables, nil
}
