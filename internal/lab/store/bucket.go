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
)

// A bucket stores objects by name, in a folder or in a container of an object
// store. Names are paths with slashes. A stored object is either complete or
// absent.
type bucket interface {
	// put stores an object. With fresh it returns errExists and changes nothing
	// if the name is taken; of several concurrent calls, exactly one succeeds.
	put(ctx context.Context, name string, b *body, fresh bool) error
	// get opens an object; the error wraps fs.ErrNotExist if there is none.
	get(ctx context.Context, name string) (io.ReadCloser, error)
	// list calls each for the objects with the prefix, in order of their names.
	list(ctx context.Context, prefix string, each func(Object) error) error
	// remove removes an object if it exists.
	remove(ctx context.Context, name string) error
	// scratch returns the folder for files that are to be put; "" is the
	// system's.
	scratch() (string, error)
	// String returns the store's address without credentials.
	String() string
}

// An Object is an entry of a listing.
type Object struct {
	Name string
	Size int64
}

var (
	errExists = errors.New("the object exists")

	// ErrFull is wrapped by errors of a full store.
	ErrFull = errors.New("the store is full")
	// ErrUnreachable is wrapped by errors without a response of an object store.
	ErrUnreachable = errors.New("the store cannot be reached")
	// ErrDenied is wrapped by errors about missing permissions.
	ErrDenied = errors.New("access denied")
)

// A body is the content of an object: bytes, or a file, which put may move.
type body struct {
	data []byte
	file string
	size int64
	sum  [sha256.Size]byte
}

func bytesBody(data []byte) *body {
	return &body{data: data, size: int64(len(data)), sum: sha256.Sum256(data)}
}

// fileBody returns a body for a file. It reads the file once for the digest.
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

// read returns the content of an object up to a size limit.
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
		return nil, fmt.Errorf("%s of %s is larger than %d bytes: it was not written by p4lb", name, b, limit)
	}
	return data, nil
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
