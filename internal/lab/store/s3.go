//go:build !js

package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// An s3 is a bucket of S3, of a compatible server (MinIO, SeaweedFS, Ceph), or
// of Google Cloud Storage, which uses the same signatures with other names.
type s3 struct {
	rest
	v4
}

// v4 creates signatures of version 4 (AWS4-HMAC-SHA256, GOOG4-HMAC-SHA256).
type v4 struct {
	maker              string // aws or goog
	algorithm, headers string // AWS4-HMAC-SHA256 and x-amz-
	key, secret, token string
	region, service    string
}

// openS3 opens s3://BUCKET/PREFIX?endpoint=URL&region=R. Values missing in the
// address come from the environment variables of other S3 programs.
func openS3(u *url.URL) (bucket, error) {
	addr := shown(u)
	keys, err := wantEnv(addr, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
	if err != nil {
		return nil, err
	}
	q := u.Query()
	region := cmp.Or(q.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
	base := fmt.Sprintf("https://%s.s3.%s.amazonaws.com", u.Host, region)
	if endpoint := cmp.Or(q.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")); endpoint != "" {
		if base, err = withBucket(endpoint, u.Host); err != nil {
			return nil, fmt.Errorf("the store %s: %w", addr, err)
		}
	}
	s := &s3{rest: newRest(addr, base, u.Path), v4: v4{
		maker: "aws", algorithm: "AWS4-HMAC-SHA256", headers: "x-amz-",
		key: keys[0], secret: keys[1], token: os.Getenv("AWS_SESSION_TOKEN"), region: region, service: "s3",
	}}
	s.rest.sign = s.v4.sign
	s.onlyNew = func(h http.Header) { h.Set("If-None-Match", "*") }
	return s, nil
}

// openGCS opens gs://BUCKET/PREFIX with the HMAC key of a service account.
func openGCS(u *url.URL) (bucket, error) {
	addr := shown(u)
	keys, err := wantEnv(addr, "GCS_ACCESS_KEY_ID", "GCS_SECRET_ACCESS_KEY")
	if err != nil {
		return nil, err
	}
	base, err := withBucket(cmp.Or(u.Query().Get("endpoint"), "https://storage.googleapis.com"), u.Host)
	if err != nil {
		return nil, fmt.Errorf("the store %s: %w", addr, err)
	}
	s := &s3{rest: newRest(addr, base, u.Path), v4: v4{
		maker: "goog", algorithm: "GOOG4-HMAC-SHA256", headers: "x-goog-",
		key: keys[0], secret: keys[1], region: "auto", service: "storage",
	}}
	s.rest.sign = s.v4.sign
	s.onlyNew = func(h http.Header) { h.Set("x-goog-if-generation-match", "0") }
	return s, nil
}

// withBucket returns the URL of a bucket at an endpoint.
func withBucket(endpoint, bucket string) (string, error) {
	e, err := url.Parse(endpoint)
	if err != nil || e.Host == "" || e.Scheme != "http" && e.Scheme != "https" {
		return "", fmt.Errorf("endpoint %q: want an address such as http://127.0.0.1:9000", endpoint)
	}
	return strings.TrimSuffix(endpoint, "/") + "/" + bucket, nil
}

// shown returns an address without its credentials.
func shown(u *url.URL) string {
	plain := *u
	plain.User = nil
	return plain.String()
}

// sign adds the headers of a version 4 signature.
func (v *v4) sign(r *http.Request, b *body, now time.Time) error {
	sum := sha256.Sum256(nil)
	if b != nil {
		sum = b.sum
	}
	payload := hex.EncodeToString(sum[:])
	stamp := now.Format("20060102T150405Z")
	h := r.Header
	h.Set(v.headers+"date", stamp)
	h.Set(v.headers+"content-sha256", payload)
	if v.token != "" {
		h.Set(v.headers+"security-token", v.token)
	}
	names := []string{"host"}
	values := map[string]string{"host": r.URL.Host}
	for name := range h {
		lower := strings.ToLower(name)
		names = append(names, lower)
		values[lower] = strings.TrimSpace(h.Get(name))
	}
	slices.Sort(names)
	var canonical strings.Builder
	fmt.Fprintf(&canonical, "%s\n%s\n%s\n", r.Method, cmp.Or(r.URL.EscapedPath(), "/"), r.URL.RawQuery)
	for _, n := range names {
		fmt.Fprintf(&canonical, "%s:%s\n", n, values[n])
	}
	signed := strings.Join(names, ";")
	fmt.Fprintf(&canonical, "\n%s\n%s", signed, payload)

	scope := strings.Join([]string{stamp[:8], v.region, v.service, v.maker + "4_request"}, "/")
	digest := sha256.Sum256([]byte(canonical.String()))
	key := []byte(strings.ToUpper(v.maker) + "4" + v.secret)
	for _, part := range strings.Split(scope, "/") {
		key = mac(key, part)
	}
	signature := mac(key, strings.Join([]string{v.algorithm, stamp, scope, hex.EncodeToString(digest[:])}, "\n"))
	h.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%x", v.algorithm, v.key, scope, signed, signature))
	return nil
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	io.WriteString(m, text)
	return m.Sum(nil)
}

func (s *s3) list(ctx context.Context, prefix string, each func(Object) error) error {
	each = bounded(each)
	query := url.Values{"list-type": {"2"}, "prefix": {s.prefix + prefix}}
	return s.pages(ctx, query, func(r io.Reader) (url.Values, error) {
		var page struct {
			Contents []struct {
				Key  string
				Size int64
			}
			IsTruncated           bool
			NextContinuationToken string
		}
		if err := xml.NewDecoder(r).Decode(&page); err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			if err := each(Object{strings.TrimPrefix(o.Key, s.prefix), o.Size}); err != nil {
				return nil, err
			}
		}
		if !page.IsTruncated {
			return nil, nil
		}
		return url.Values{"list-type": {"2"}, "prefix": {s.prefix + prefix}, "continuation-token": {page.NextContinuationToken}}, nil
	})
}
