//go:build !js

package store

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// A rest is an HTTP client for object stores. It contains the parts common to
// several vendors; signatures and header names differ.
type rest struct {
	addr   string // as the user wrote it, for messages
	base   string // URL of the container, without a trailing slash
	prefix string // prefix of names: empty or with a trailing slash
	client *http.Client
	sign   func(r *http.Request, b *body, now time.Time) error
	// onlyNew marks a request that must not replace an object.
	onlyNew func(http.Header)

	// skew is the difference between the store's clock and this machine's, as
	// far as known. Signatures contain the time.
	skew atomic.Int64
	now  func() time.Time
	wait func(context.Context, time.Duration) error

	patience time.Duration
}

// tries is the maximum number of attempts for a request with transient errors.
const tries = 5

func newRest(addr, base, prefix string) rest {
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return rest{
		addr: addr, base: base, prefix: prefix, now: time.Now, wait: plain.Pause, patience: patience,
		client: &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
		}},
	}
}

func (c *rest) String() string             { return c.addr }
func (c *rest) scratch() (string, error)   { return "", nil }
func (c *rest) object(name string) string  { return c.base + "/" + escapePath(c.prefix+name) }
func (c *rest) said(err error) (e *answer) { errors.As(err, &e); return e }

// An answer is an error response of the store.
type answer struct {
	Status  int
	Code    string `xml:"Code"`
	Message string `xml:"Message"`
	date    time.Time
}

func (a *answer) Error() string {
	text := strings.Join(strings.Fields(a.Message), " ")
	if a.Code != "" {
		text = strings.TrimSpace(a.Code + " " + text)
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1 // control characters could affect a terminal
		}
		return r
	}, text)
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return fmt.Sprintf("%d %s", a.Status, text)
}

// do sends a request and retries transient errors. The caller closes the body.
func (c *rest) do(ctx context.Context, method, address string, b *body, set func(http.Header)) (resp *http.Response, err error) {
	began := time.Now()
	for try := 1; ; try++ {
		resp, err = c.once(ctx, method, address, b, set)
		if err == nil || ctx.Err() != nil || try == tries || !c.passing(err) || time.Since(began) > c.patience {
			return resp, err
		}
		if e := c.wait(ctx, 100*time.Millisecond<<(try-1)); e != nil {
			return nil, e
		}
	}
}

// passing reports whether the error is transient.
func (c *rest) passing(err error) bool {
	a := c.said(err)
	if a == nil {
		var op *net.OpError
		refused := errors.As(err, &op) && op.Op == "dial"
		return !refused && err != errSlow // a refused connection will not recover within seconds
	}
	if a.Status == http.StatusForbidden && !a.date.IsZero() {
		if skew := a.date.Sub(c.now()); (skew - time.Duration(c.skew.Load())).Abs() > 5*time.Minute {
			c.skew.Store(int64(skew))
			return true
		}
	}
	return a.Status == http.StatusTooManyRequests || a.Status == http.StatusRequestTimeout ||
		a.Status >= 500 && a.Status != http.StatusNotImplemented && a.Status != http.StatusInsufficientStorage ||
		a.Status == http.StatusConflict && a.Code == "ConditionalRequestConflict"
}

func (c *rest) once(ctx context.Context, method, address string, b *body, set func(http.Header)) (resp *http.Response, err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer func() {
		if err != nil {
			end(nil)
		}
	}()
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	left := c.patience
	if b != nil {
		left += time.Duration(b.size/slowest) * time.Second
		if r.Body, err = b.open(); err != nil {
			return nil, err
		}
		r.ContentLength = b.size
		if b.size == 0 {
			r.Body = http.NoBody
		}
	}
	if set != nil {
		set(r.Header)
	}
	if err := c.sign(r, b, c.now().Add(time.Duration(c.skew.Load())).UTC()); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(left, func() { end(errSlow) })
	resp, err = c.client.Do(r)
	timer.Stop()
	if err != nil {
		if context.Cause(ctx) == errSlow {
			return nil, errSlow
		}
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, err
	}
	resp.Body = &reply{resp.Body, ctx, timer, end, c.patience}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	a := &answer{Status: resp.StatusCode}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if xml.Unmarshal(text, a) != nil {
		a.Message = http.StatusText(resp.StatusCode)
	}
	a.Status = resp.StatusCode
	a.date, _ = http.ParseTime(resp.Header.Get("Date"))
	return nil, a
}

// explain adds the store to an error and classifies it.
func (c *rest) explain(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a := c.said(err)
	switch {
	case a == nil:
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return err // the error concerns a local file
		}
		err = fmt.Errorf("%w: %v", ErrUnreachable, err)
	case a.Code == "XMinioStorageFull", a.Code == "QuotaExceeded", strings.Contains(a.Code, "StorageFull"), a.Status == http.StatusInsufficientStorage:
		err = fmt.Errorf("%w (%v)", ErrFull, a)
	case a.Status == http.StatusForbidden, a.Status == http.StatusUnauthorized:
		err = fmt.Errorf("%w: %v", ErrDenied, a)
	case a.Code == "NoSuchBucket", a.Code == "ContainerNotFound":
		err = fmt.Errorf("no such bucket (%v)", a)
	case a.Status == http.StatusNotFound:
		err = fmt.Errorf("%w (%v)", fs.ErrNotExist, a)
	case a.Code == "":
		err = fmt.Errorf("%w: not an object store (%v)", ErrUnreachable, a)
	}
	return fmt.Errorf("%s the store %s: %w", doing, c.addr, err)
}

func (c *rest) put(ctx context.Context, name string, b *body, fresh bool) error {
	resp, err := c.do(ctx, http.MethodPut, c.object(name), b, func(h http.Header) {
		if fresh {
			c.onlyNew(h)
		}
	})
	if a := c.said(err); fresh && a != nil && (a.Status == http.StatusPreconditionFailed || a.Status == http.StatusConflict) {
		return errExists
	}
	if err != nil {
		return c.explain(ctx, "writing "+name+" into", err)
	}
	return drained(resp)
}

func (c *rest) get(ctx context.Context, name string) (io.ReadCloser, error) {
	resp, err := c.do(ctx, http.MethodGet, c.object(name), nil, nil)
	if err != nil {
		return nil, c.explain(ctx, "reading "+name+" of", err)
	}
	return resp.Body, nil
}

func (c *rest) remove(ctx context.Context, name string) error {
	resp, err := c.do(ctx, http.MethodDelete, c.object(name), nil, nil)
	if a := c.said(err); a != nil && a.Status == http.StatusNotFound && a.Code != "NoSuchBucket" {
		return nil
	}
	if err != nil {
		return c.explain(ctx, "removing "+name+" of", err)
	}
	return drained(resp)
}

// pages requests a listing page by page. page returns the query for the next
// page, or nil after the last one.
func (c *rest) pages(ctx context.Context, query url.Values, page func(io.Reader) (url.Values, error)) error {
	for n := 0; query != nil; n++ {
		if n == maxPages {
			return fmt.Errorf("listing the store %s: it has more than %d pages", c.addr, maxPages)
		}
		resp, err := c.do(ctx, http.MethodGet, c.base+"?"+escapeQuery(query), nil, nil)
		if err != nil {
			return c.explain(ctx, "listing", err)
		}
		next, err := page(io.LimitReader(resp.Body, maxPage))
		resp.Body.Close()
		if err == nil && maps.EqualFunc(query, next, slices.Equal) {
			err = errors.New("the store returned the same page twice")
		}
		if err != nil {
			return fmt.Errorf("listing the store %s: %w", c.addr, err)
		}
		query = next
	}
	return nil
}

func drained(resp *http.Response) error {
	io.CopyN(io.Discard, resp.Body, maxRest)
	return resp.Body.Close()
}

// escapePath and escapeQuery escape all characters that the signatures require
// to be escaped.
func escapePath(p string) string {
	var b strings.Builder
	for i := range len(p) {
		if c := p[i]; c == '/' || unreserved(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func escapeQuery(q url.Values) string { return strings.ReplaceAll(q.Encode(), "+", "%20") }

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~", c) >= 0
}

// wantEnv returns environment variables that must be set.
func wantEnv(addr string, names ...string) ([]string, error) {
	var values, missing []string
	for _, n := range names {
		v := os.Getenv(n)
		if v == "" {
			missing = append(missing, n)
		}
		values = append(values, v)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the store %s: environment variable not set: %s", addr, strings.Join(missing, ", "))
	}
	return values, nil
}
