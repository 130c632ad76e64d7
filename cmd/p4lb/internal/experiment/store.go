package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/store"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// addStoreFlag adds the flag --store to a verb.
func addStoreFlag(cmd *cobra.Command, url *string) {
	cmd.Flags().StringVar(url, "store", "", "store and reuse runs at `URL`: a folder, s3://BUCKET/PREFIX, gs://… or az://…")
}

// openStore opens a store. Its errors have hints.
func openStore(ctx context.Context, url string, create bool) (*store.Store, error) {
	st, err := store.Open(ctx, url, create)
	return st, explainStore(err)
}

func explainStore(err error) error {
	switch {
	case errors.Is(err, store.ErrUnreachable):
		return cli.Hinted(err, "?endpoint=http://HOST:PORT behind the address names a server that is not the maker's")
	case errors.Is(err, store.ErrDenied):
		return cli.Hinted(err, "docs/cluster.md lists the variables for credentials and the permissions they need")
	}
	return err
}

// labShard parses --shard I/N. If I is omitted, the scheduler sets it in the environment; from is
// the name of the variable.
func labShard(text string, env func(string) string) (s lab.Shard, from string, err error) {
	bad := func() (lab.Shard, string, error) {
		return lab.Shard{}, "", fmt.Errorf("--shard %s: want I/N, such as 3/64, or /64 in a task of a scheduler", text)
	}
	index, of, ok := strings.Cut(text, "/")
	if text != "" {
		n, err := strconv.Atoi(of)
		if !ok || err != nil || n < 1 {
			return bad()
		}
		s.Of = n
	}
	if index == "" {
		number, count := 0, 0
		for _, v := range []struct {
			name  string
			first string
		}{{"SLURM_ARRAY_TASK_ID", cmp.Or(env("SLURM_ARRAY_TASK_MIN"), "1")}, {"JOB_COMPLETION_INDEX", "0"}} {
			if number, err = strconv.Atoi(env(v.name)); err == nil {
				first, _ := strconv.Atoi(v.first)
				number, from = number-first+1, v.name
				break
			}
		}
		count, _ = strconv.Atoi(env("SLURM_ARRAY_TASK_COUNT"))
		switch {
		case from == "" && text == "":
			return lab.Shard{}, "", nil // no shard is given
		case from == "":
			return s, "", fmt.Errorf("--shard %s: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is there: want I/N, such as 3/64", text)
		case text == "" && (from != "SLURM_ARRAY_TASK_ID" || count < 1):
			return s, "", fmt.Errorf("%s gives the number of this shard, but not the number of shards: want --shard /N", from)
		case text == "":
			s.Of = count
		}
		s.Index = number - 1
	} else if s.Index, err = strconv.Atoi(index); err != nil {
		return bad()
	} else {
		s.Index--
	}
	if s.Index < 0 || s.Index >= s.Of {
		if from != "" {
			return s, from, fmt.Errorf("%s makes this shard %d of %d: want 1 to %d", from, s.Index+1, s.Of, s.Of)
		}
		return s, "", fmt.Errorf("--shard %s: want 1/%d to %d/%d", text, s.Of, s.Of, s.Of)
	}
	return s, from, nil
}

// resultsDir is the default folder for results.
const resultsDir = "results"

// linkLatest makes the link results/NAME point to the latest results of that name.
// It leaves anything else of this name alone.
func linkLatest(dir, name, world string) {
	link := filepath.Join(resultsDir, plain.Folder(name))
	if world != lab.Sim {
		link += "-" + world
	}
	if filepath.Dir(dir) != resultsDir {
		return
	}
	if info, err := os.Lstat(link); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return
	}
	// On a file system without links, only the folder exists.
	temp := link + ".link"
	if os.Remove(temp); os.Symlink(filepath.Base(dir), temp) == nil {
		os.Rename(temp, link)
	}
}
