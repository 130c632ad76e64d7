package dataset

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

func TestOpenParquet(t *testing.T) {
	var good bytes.Buffer
	w := parquet.NewGenericWriter[struct{ A, B float64 }](&good)
	if _, err := w.Write(make([]struct{ A, B float64 }, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := func(footer string, length string) string { return parquetMagic + footer + length + parquetMagic }
	// first is the file with another header before its first page; what does not
	// fit goes.
	first := func(change func(*format.PageHeader)) string {
		text := good.Bytes()
		h, _, err := readPageHeader(bytes.NewReader(text), int64(len(parquetMagic)), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		h.CompressedPageSize -= 100 // for a longer header
		change(h)
		head, err := thrift.Marshal(new(thrift.CompactProtocol), h)
		if err != nil {
			t.Fatal(err)
		}
		at := len(parquetMagic)
		return string(text[:at]) + string(head) + string(text[at+len(head):])
	}
	for _, c := range []struct{ name, text, want string }{
		{"a whole file", good.String(), ""},
		{"4 GiB in 112 bytes", file(strings.Repeat("x", 100), "\xff\xff\xff\xff"), "its footer is broken: of 4294967295 bytes in a file of 112"},
		{"a list of 2^31", file("\x29\xfc\xff\xff\xff\xff\x07\x00", "\x08\x00\x00\x00"), "its footer is broken"},
		{"a text of 2^31", file("\x18\xff\xff\xff\xff\x07\x00\x00", "\x08\x00\x00\x00"), "its footer is broken"},
		{"structs in structs", file(strings.Repeat("\x1c", 5000), "\x88\x13\x00\x00"), "its footer is broken"},
		{"a page of 2 GiB", first(func(h *format.PageHeader) { h.CompressedPageSize = math.MaxInt32 }), "a page is broken: 2147483647 bytes from"},
		{"a page that unpacks to 2 GiB", first(func(h *format.PageHeader) { h.UncompressedPageSize = math.MaxInt32 }), "2147483647 bytes unpacked"},
		{"a page of 2^31 values", first(func(h *format.PageHeader) {
			h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues = math.MaxInt32, math.MaxInt32
		}), "2147483647 values"},
		{"a header of garbage", parquetMagic + strings.Repeat("\xff", 2000) + good.String()[2004:], "no header at 4"},
		{"nothing", "", "too short"},
		{"no file of Parquet", "a,b,c\n1,2,3\n4,5,6\n", "does not end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := OpenParquet(strings.NewReader(c.text), int64(len(c.text)))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
