package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// A bucket keeps objects by name: a folder, or a container of an object store.
// Names are paths with slashes. An object appears whole or not at all.
type bucket interface {
	// put keeps an object; with fresh it gives errExists, and changes nothing,
	// where there is one of that name. Of many that put at once, one succeeds.
	put(ctx context.Context, name string, b *body, fresh bool) error
	// get opens an object; an error that is fs.ErrNotExist says that there is none.
	get(ctx context.Context, name string) (io.ReadCloser, error)
	// list calls each for the objects whose names begin with prefix, in the order
	// of their names.
	list(ctx context.Context, prefix string, each func(Object) error) error
	// remove removes an object, if there is one.
	remove(ctx context.Context, name string) error
	// scratch is the folder for files that are to be put: "" for the system's.
	scratch() (string, error)
	// String is the store's address, without credentials.
	String() string
}

// An Object is what a listing says of an object.
type Object struct {
	Name string
	Size int64
	Time time.Time // of its last change, by the store's clock: for people alone
}

var (
	errExists = errors.New("the object exists")

	// ErrFull is wrapped by the error of a store that has no room left.
	ErrFull = errors.New("the store is full")
	// ErrUnreachable is wrapped where no answer came, or none that a store gives.
	ErrUnreachable = errors.New("the store cannot be reached")
	// ErrDenied is wrapped where the store does not allow what is asked.
	ErrDenied = errors.New("the store does not allow it")
)

// A body is what an object is to hold: bytes, or a file, which putting may move
// away.
type body struct {
	data []byte
	file string
	size int64
	sum  [sha256.Size]byte
}

func bytesBody(data []byte) *body {
	return &body{data: data, size: int64(len(data)), sum: sha256.Sum256(data)}
}

// fileBody reads the file once, for its digest.
func fileBody(name string) (*body, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	b := &body{file: name}
	if b.size, err = io.Copy(h, f); err != nil {
		return nil, err
	}
	h.Sum(b.sum[:0])
	return b, nil
}

func (b *body) digest() string { return hex.EncodeToString(b.sum[:]) }

func (b *body) open() (io.ReadCloser, error) {
	if b.file == "" {
		return io.NopCloser(bytes.NewReader(b.data)), nil
	}
	return os.Open(b.file)
}

// read returns all of an object, up to a limit.
func read(ctx context.Context, b bucket, name string, limit int64) ([]byte, error) {
	r, err := b.get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s of %s: %w", name, b, err)
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("%s of %s is larger than %d bytes: nothing that belongs there", name, b, limit)
	}
	return data, nil
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
