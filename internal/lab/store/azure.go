//go:build !js

package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An azure is a container of Azure Blob Storage.
type azure struct {
	rest
	account string
	key     []byte     // account key
	token   url.Values // shared access signature, used instead of a key
}

// azureVersion is the version of the REST API that requests use.
const azureVersion = "2021-08-06"

// openAzure opens az://CONTAINER/PREFIX?endpoint=URL with an account key or a
// shared access signature.
func openAzure(u *url.URL) (bucket, error) {
	addr := shown(u)
	account, err := wantEnv(addr, "AZURE_STORAGE_ACCOUNT")
	if err != nil {
		return nil, err
	}
	a := &azure{account: account[0]}
	if sas := os.Getenv("AZURE_STORAGE_SAS_TOKEN"); sas != "" {
		if a.token, err = url.ParseQuery(strings.TrimPrefix(sas, "?")); err != nil {
			return nil, fmt.Errorf("the store %s: AZURE_STORAGE_SAS_TOKEN is not a query string: %w", addr, err)
		}
	} else {
		key, err := wantEnv(addr, "AZURE_STORAGE_KEY")
		if err != nil {
			return nil, err
		}
		if a.key, err = base64.StdEncoding.DecodeString(key[0]); err != nil {
			return nil, fmt.Errorf("the store %s: AZURE_STORAGE_KEY is not valid base64", addr)
		}
	}
	base, err := withBucket(cmp.Or(u.Query().Get("endpoint"), "https://"+a.account+".blob.core.windows.net"), u.Host)
	if err != nil {
		return nil, fmt.Errorf("the store %s: %w", addr, err)
	}
	a.rest = newRest(addr, base, u.Path)
	a.rest.sign = a.sign
	a.onlyNew = func(h http.Header) { h.Set("If-None-Match", "*") }
	return a, nil
}

// sign signs a request with the account key, or adds the shared access
// signature.
func (a *azure) sign(r *http.Request, b *body, now time.Time) error {
	h := r.Header
	h.Set("x-ms-version", azureVersion)
	h.Set("x-ms-date", now.Format(http.TimeFormat))
	length := ""
	if b != nil {
		h.Set("x-ms-blob-type", "BlockBlob")
		h.Set("Content-Type", "application/octet-stream")
		if b.size > 0 {
			length = strconv.FormatInt(b.size, 10)
		}
	}
	if a.token != nil {
		q := r.URL.Query()
		maps.Copy(q, a.token)
		r.URL.RawQuery = escapeQuery(q)
		return nil
	}
	var text strings.Builder
	// The verb, then encoding, language, length, MD5, type, date and
	// conditions.
	for _, v := range []string{r.Method, "", "", length, "", h.Get("Content-Type"), "", "", "", h.Get("If-None-Match"), "", ""} {
		text.WriteString(v + "\n")
	}
	var names []string
	for n := range h {
		if lower := strings.ToLower(n); strings.HasPrefix(lower, "x-ms-") {
			names = append(names, lower)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Fprintf(&text, "%s:%s\n", n, h.Get(n))
	}
	fmt.Fprintf(&text, "/%s%s", a.account, r.URL.EscapedPath())
	query := r.URL.Query()
	for _, k := range slices.Sorted(maps.Keys(query)) {
		fmt.Fprintf(&text, "\n%s:%s", strings.ToLower(k), strings.Join(query[k], ","))
	}
	m := hmac.New(sha256.New, a.key)
	io.WriteString(m, text.String())
	h.Set("Authorization", fmt.Sprintf("SharedKey %s:%s", a.account, base64.StdEncoding.EncodeToString(m.Sum(nil))))
	return nil
}

func (a *azure) list(ctx context.Context, prefix string, each func(Object) error) error {
	each = bounded(each)
	first := url.Values{"restype": {"container"}, "comp": {"list"}, "prefix": {a.prefix + prefix}}
	return a.pages(ctx, first, func(r io.Reader) (url.Values, error) {
		var page struct {
			Blobs struct {
				Blob []struct {
					Name       string
					Properties struct {
						Size int64 `xml:"Content-Length"`
					}
				}
			}
			NextMarker string
		}
		if err := xml.NewDecoder(r).Decode(&page); err != nil {
			return nil, err
		}
		for _, o := range page.Blobs.Blob {
			if err := each(Object{strings.TrimPrefix(o.Name, a.prefix), o.Properties.Size}); err != nil {
				return nil, err
			}
		}
		if page.NextMarker == "" {
			return nil, nil
		}
		next := url.Values{"marker": {page.NextMarker}}
		maps.Copy(next, first)
		return next, nil
	})
}
