package dataset

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

func TestCheckParquet(t *testing.T) {
	var good bytes.Buffer
	w := parquet.NewGenericWriter[struct{ A, B float64 }](&good)
	if _, err := w.Write(make([]struct{ A, B float64 }, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := func(footer string, length string) string { return parquetMagic + footer + length + parquetMagic }
	for _, c := range []struct{ name, text, want string }{
		{"a whole file", good.String(), ""},
		{"4 GiB in 112 bytes", file(strings.Repeat("x", 100), "\xff\xff\xff\xff"), "its footer is broken: of 4294967295 bytes in a file of 112"},
		{"a list of 2^31", file("\x29\xfc\xff\xff\xff\xff\x07\x00", "\x08\x00\x00\x00"), "its footer is broken"},
		{"a text of 2^31", file("\x18\xff\xff\xff\xff\x07\x00\x00", "\x08\x00\x00\x00"), "its footer is broken"},
		{"structs in structs", file(strings.Repeat("\x1c", 5000), "\x88\x13\x00\x00"), "its footer is broken"},
		{"nothing", "", "too short"},
		{"no file of Parquet", "a,b,c\n1,2,3\n4,5,6\n", "does not end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckParquet(strings.NewReader(c.text), int64(len(c.text)))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
