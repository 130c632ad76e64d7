package page

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Write writes the page and its engine to a folder that any static file server can
// serve. It builds the engine from the checkout in root.
func Write(dir, root string) error {
	if err := WriteFiles(dir); err != nil {
		return err
	}
	support, err := goRoot(root)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(support, "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return fmt.Errorf("reading Go's support of WebAssembly: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "wasm_exec.js"), text, 0o666); err != nil {
		return err
	}
	return writeEngine(dir, root)
}

// WriteFiles writes the page without its engine.
func WriteFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	names, err := fs.Glob(Files, "*.*")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := Files.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o666)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func goRoot(root string) (string, error) {
	cmd := exec.Command("go", "env", "GOROOT")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// maxMemory bounds the engine's memory in bytes. If the engine exceeds it, it ends,
// and the page starts another one.
const maxMemory = 500 << 20

// bounded returns a WebAssembly module whose declared maximum memory is most bytes.
func bounded(wasm []byte, most uint64) ([]byte, error) {
	const (
		header   = 8 // magic number and version
		memories = 5 // number of the memory section
		pageSize = 64 << 10
	)
	for at := header; at < len(wasm); {
		id := wasm[at]
		size, n := binary.Uvarint(wasm[at+1:])
		begin := at + 1 + n
		end := begin + int(size)
		if n <= 0 || end > len(wasm) || end < begin {
			break
		}
		if id != memories {
			at = end
			continue
		}
		if size < 3 || wasm[begin] != 1 || wasm[begin+1] != 0 {
			return nil, errors.New("want one memory without a largest size")
		}
		least := wasm[begin+2 : end]
		section := binary.AppendUvarint(append([]byte{1, 1}, least...), most/pageSize)
		out := binary.AppendUvarint(append(slices.Clone(wasm[:at]), memories), uint64(len(section)))
		return append(append(out, section...), wasm[end:]...), nil
	}
	return nil, errors.New("there is no memory")
}

// writeEngine builds the engine and compresses it.
func writeEngine(dir, root string) error {
	temp, err := os.MkdirTemp("", "p4lb-engine-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	file := filepath.Join(temp, "p4lb.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "./internal/play/worker")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the engine: %w: %s", err, out)
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if wasm, err = bounded(wasm, maxMemory); err != nil {
		return fmt.Errorf("bounding the engine's memory: %w", err)
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(wasm)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "p4lb.wasm.gz"), b.Bytes(), 0o666)
}
