package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
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
	// first returns the file with a changed header before its first page. The page
	// is truncated to the space.
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

// bomb returns a file with a column of one page. The header of the page states ten
// values.
func bomb(t *testing.T, codec parquet.WriterOption, e encoding.Encoding, of parquet.Type, change func(*format.PageHeader, []byte) []byte) string {
	t.Helper()
	var file bytes.Buffer
	schema := parquet.NewSchema("rows", parquet.Group{"a": parquet.Encoded(parquet.Leaf(of), e)})
	w := parquet.NewGenericWriter[any](&file, schema, codec)
	for i := range 10 {
		v := parquet.ValueOf(int64(i))
		if of.Kind() == parquet.ByteArray {
			v = parquet.ValueOf("x")
		}
		if _, err := w.WriteRows([]parquet.Row{{v.Level(0, 0, 0)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := OpenParquet(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatalf("before it is changed: %v", err)
	}
	c := &f.Metadata().RowGroups[0].Columns[0].MetaData
	at := c.DataPageOffset
	h, n, err := readPageHeader(bytes.NewReader(file.Bytes()), at, int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	page := change(h, file.Bytes()[at+n:at+n+int64(h.CompressedPageSize)])
	h.CompressedPageSize, h.CRC = int32(len(page)), 0
	head, err := thrift.Marshal(new(thrift.CompactProtocol), h)
	if err != nil {
		t.Fatal(err)
	}
	// The data behind the page moves. Only the footer refers to it, and the footer
	// is read from the end.
	meta := *f.Metadata()
	m := &meta.RowGroups[0].Columns[0].MetaData
	m.TotalCompressedSize = at - m.DataPageOffset + int64(len(head)+len(page))
	if d := m.DictionaryPageOffset; d > 0 {
		m.TotalCompressedSize += m.DataPageOffset - d
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &meta)
	if err != nil {
		t.Fatal(err)
	}
	text := string(file.Bytes()[:at]) + string(head) + string(page) + string(footer)
	return text + string(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) + parquetMagic
}

// TestBombs: sizes inside a page are limited too.
func TestBombs(t *testing.T) {
	plain, zstd := parquet.Compression(&parquet.Uncompressed), parquet.Compression(&parquet.Zstd)
	long := parquet.Type(parquet.Int64Type)
	// of replaces the data behind the levels; these columns have no levels.
	of := func(text string) func(*format.PageHeader, []byte) []byte {
		return func(*format.PageHeader, []byte) []byte { return []byte(text) }
	}
	uvarints := func(list ...uint64) string {
		var b []byte
		for _, v := range list {
			b = binary.AppendUvarint(b, v)
		}
		return string(b)
	}
	frame := "\x28\xb5\x2f\xfd\x00\x58" // without a size
	block := func(kind, n uint32, last bool) string {
		b := n<<3 | kind<<1
		if last {
			b |= 1
		}
		return string([]byte{byte(b), byte(b >> 8), byte(b >> 16)})
	}
	for _, c := range []struct{ name, text, want string }{
		{"of Zstandard", bomb(t, zstd, &parquet.Plain, long, of(frame+strings.Repeat(block(1, 128<<10, false)+"x", 1000)+block(1, 1, true)+"x")), "more than 67108864 bytes unpacked"},
		{"of Zstandard, cut short", bomb(t, zstd, &parquet.Plain, long, of(frame+block(0, 128<<10, true))), "unexpected EOF"},
		{"of Snappy", bomb(t, parquet.Compression(&parquet.Snappy), &parquet.Plain, long, of(uvarints(1<<32-1)+"xxx")), "more than 67108864 bytes unpacked"},
		{"of gzip", bomb(t, parquet.Compression(&parquet.Gzip), &parquet.Plain, long, of(zeros(t, maxPage+1))), "more than 67108864 bytes unpacked"},
		{"of differences", bomb(t, plain, &parquet.DeltaBinaryPacked, long, of(uvarints(128, 4, 1<<31-1, 0))), "2147483647 values where its header says 10"},
		{"of a dictionary's numbers", bomb(t, plain, &parquet.RLEDictionary, parquet.ByteArrayType, of("\x01"+uvarints(1<<31)+"\x00")), "a run of 1073741824 where its header says 10 values"},
		{"of groups of them", bomb(t, plain, &parquet.RLEDictionary, parquet.ByteArrayType, of("\x00"+uvarints(1<<60|1))), "a run of"},
		{"of prefixes", bomb(t, plain, &parquet.DeltaLengthByteArray, parquet.ByteArrayType, func(h *format.PageHeader, page []byte) []byte {
			h.DataPageHeader.V.Encoding, h.DataPageHeaderV2.V.Encoding = format.DeltaByteArray, format.DeltaByteArray
			return page
		}), "it is encoded by DELTA_BYTE_ARRAY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := OpenParquet(strings.NewReader(c.text), int64(len(c.text)))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestPacked: LZ4 and Brotli are refused, because their output size is unknown in
// advance.
func TestPacked(t *testing.T) {
	for _, c := range []format.CompressionCodec{format.Lz4Raw, format.Brotli, 77} {
		if _, err := unpack(c, []byte("x")); err == nil || !strings.Contains(err.Error(), "want ZSTD, SNAPPY, GZIP or UNCOMPRESSED") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// zeros are n of them, packed.
func zeros(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCompact skips values of each type of Thrift's compact protocol, and refuses text
// that ends early.
func TestCompact(t *testing.T) {
	for _, good := range []string{
		"\x00",
		"\x11\x12\x00",         // true, false
		"\x13\x05\x00",         // a byte
		"\x15\x80\x01\x00",     // an integer
		"\x05\x02\x80\x01\x00", // a field with its number
		"\x17" + "12345678" + "\x00",
		"\x18\x03abc\x00",
		"\x19\x31abc\x00",                       // a list of three booleans
		"\x1a\xf5\x10" + "abcdefghijklmnop\x00", // a set of 16 integers
		"\x1c\x15\x01\x00\x00",                  // a structure
		"\x19\x1c\x00\x00",                      // a list of one structure
		strings.Repeat("\x1c", 32) + strings.Repeat("\x00", 33),
	} {
		c := compact{text: []byte(good)}
		if c.structure(0); c.broken || len(c.text) > 0 {
			t.Errorf("%q: broken %v, %d bytes left", good, c.broken, len(c.text))
		}
		if good == "\x00" {
			continue
		}
		c = compact{text: []byte(good[:len(good)-1])}
		if c.structure(0); !c.broken {
			t.Errorf("%q without its end is valid", good)
		}
	}
	for _, bad := range []string{
		"", "\x13", "\x15", "\x15\x80", "\x05", "\x171234567", "\x18\x04abc", "\x18", "\x19", "\x19\xf5", "\x19\x45abc\x00", "\x1b\x00", "\x1d\x00",
		strings.Repeat("\x1c", 33) + strings.Repeat("\x00", 34),
	} {
		c := compact{text: []byte(bad)}
		if c.structure(0); !c.broken {
			t.Errorf("%q is valid", bad)
		}
		if got := c.varint() + uint64(c.byte()); got != 0 {
			t.Errorf("after an error, a number is %d", got)
		}
	}
}

// TestCompactLimits: lists have at most 2^20 elements, and values are nested at most 32 deep,
// whether in structures or in lists. A footer of lists in lists would exhaust the stack.
func TestCompactLimits(t *testing.T) {
	list := func(n int) string {
		return "\x19\xf1" + string(binary.AppendUvarint(nil, uint64(n))) + strings.Repeat("\x01", n) + "\x00"
	}
	lists := func(n int) string { return strings.Repeat("\x19", n) + "\x11\x01\x00" }
	for _, c := range []struct {
		name, text string
		broken     bool
	}{
		{"the longest list", list(1 << 20), false},
		{"a longer list", list(1<<20 + 1), true},
		{"a list without elements", "\x19\x01\x00", false},
		{"32 lists, one in the other", lists(32), false},
		{"33 lists, one in the other", lists(33), true},
		{"a structure in 31 lists", strings.Repeat("\x19", 31) + "\x1c\x00\x00", false},
		{"a structure in 32 lists", strings.Repeat("\x19", 32) + "\x1c\x00\x00", true},
		{"a footer of lists", strings.Repeat("\x19", maxFooter), true},
	} {
		p := compact{text: []byte(c.text)}
		if p.structure(0); p.broken != c.broken || len(p.text) > 0 {
			t.Errorf("%s: broken %v with %d bytes left, want %v", c.name, p.broken, len(p.text), c.broken)
		}
	}
	// A value may end with the text.
	for _, text := range []string{"\x31abc", "\x11\x01"} {
		p := compact{text: []byte(text)}
		if p.value(9, 0); p.broken || len(p.text) > 0 {
			t.Errorf("%q: broken %v with %d bytes left", text, p.broken, len(p.text))
		}
	}
}

// TestFooterLimits: a footer lies between the magic numbers of the file and has at most 16 MiB.
func TestFooterLimits(t *testing.T) {
	file := func(before string, n int, footer string) string {
		return before + footer + string(binary.LittleEndian.AppendUint32(nil, uint32(n))) + parquetMagic
	}
	for _, c := range []struct{ name, text, want string }{
		{"a footer that fills the file", file(parquetMagic, 1, "\x00"), ""},
		{"a footer of no bytes", file(parquetMagic, 0, ""), "its footer is broken"},
		{"a footer over the first magic number", file(parquetMagic, 2, "\x00"), "its footer is broken: of 2 bytes in a file of 13, 16777216 at most"},
		{"too short by a byte", file(parquetMagic[1:], 0, ""), "too short for a Parquet file"},
		{"the longest footer", file(parquetMagic, maxFooter, "\x00"+strings.Repeat("x", maxFooter-1)), ""},
		{"a longer footer", file(parquetMagic, maxFooter+1, strings.Repeat("\x00", maxFooter+1)), "its footer is broken: of 16777217 bytes in a file of 16777229, 16777216 at most"},
		{"another end", "PAR1\x00\x01\x00\x00\x00PARE", "it does not end as a Parquet file does"},
	} {
		err := checkFooter(strings.NewReader(c.text), int64(len(c.text)))
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestRuns counts the values of runs and groups, and accepts at most as many as the
// header of a page states, and those that writers add to fill up the last group.
func TestRuns(t *testing.T) {
	uvarint := func(v uint64) string { return string(binary.AppendUvarint(nil, v)) }
	const values = 100
	for _, c := range []struct {
		width int
		text  string
		want  string
	}{
		{1, uvarint(values<<1) + "\x01", ""},
		{9, uvarint(values<<1) + "\x01\x00" + uvarint((roundUp)<<1) + "\x01\x00", ""},
		{9, uvarint(values<<1) + "\x01\x00" + uvarint((roundUp+1)<<1) + "\x01\x00", "a run of 513 where its header says 100 values"},
		{0, uvarint((values + roundUp) << 1), ""},
		{0, uvarint((values + roundUp + 1) << 1), "a run of 613 where its header says 100 values"},
		{1, uvarint(76<<1|1) + strings.Repeat("x", 76) + uvarint(4<<1) + "\x00", ""},
		{1, uvarint(76<<1|1) + strings.Repeat("x", 76) + uvarint(5<<1) + "\x00", "a run of 5 where"},
		{1, uvarint(77<<1|1) + strings.Repeat("x", 77), "a run of 616 where"},
		{1, uvarint(2<<1|1) + "x", ""}, // the last group may be incomplete
		{1, "\x80", "the length of a run is missing"},
	} {
		p := page{most: values + roundUp}
		p.runs(c.width, []byte(c.text))
		if c.want == "" && p.err != nil || c.want != "" && (p.err == nil || p.err.Error() != "a page is broken: "+c.want && !strings.HasPrefix(p.err.Error(), "a page is broken: "+c.want)) {
			t.Errorf("width %d, %q: %v, want %q", c.width, c.text, p.err, c.want)
		}
	}
	for _, c := range []struct {
		text string
		e    format.Encoding
		want string
	}{
		{"", format.RLEDictionary, ""},
		{"\x01" + uvarint(values<<1) + "\x01", format.RLEDictionary, ""},
		{"\x01" + uvarint(values<<1) + "\x01", plainDictionary, ""},
		{"\x01" + uvarint(1000<<1) + "\x01", plainDictionary, "a run of 1000"},
		{"\x03\x00\x00\x00" + uvarint(values<<1) + "\x01", format.RLE, ""},
		{"\x03\x00\x00\x00" + uvarint(1000<<1) + "\x01", format.RLE, "a run of 1000"},
		{"\x04\x00\x00\x00" + uvarint(values<<1) + "\x01", format.RLE, "4 bytes where there are 3"},
		{"\x04\x00\x00", format.RLE, "4 bytes where there are 3"},
		{"\x80\x01\x04" + uvarint(values+roundUp), format.DeltaBinaryPacked, ""},
		{"\x80\x01\x04" + uvarint(values+roundUp+1), format.DeltaLengthByteArray, "613 values where its header says 100"},
		{"\x80\x01\x04", format.DeltaLengthByteArray, "it has no values"},
		{"x", format.Plain, ""},
		{"x", format.DeltaByteArray, "it is encoded by DELTA_BYTE_ARRAY"},
	} {
		p := page{most: values + roundUp, text: []byte(c.text)}
		p.values(c.e)
		if c.want == "" && p.err != nil || c.want != "" && (p.err == nil || !strings.HasPrefix(p.err.Error(), "a page is broken: "+c.want)) {
			t.Errorf("%v, %q: %v, want %q", c.e, c.text, p.err, c.want)
		}
	}
}

// TestPageLimits: a page has at most 64 MiB packed and unpacked, at most 2^24 values, and lies in
// its column.
func TestPageLimits(t *testing.T) {
	type head = format.PageHeader
	check := func(change func(h *head), size int64, contents int) error {
		h := &head{UncompressedPageSize: 1}
		h.DictionaryPageHeader.Valid = true
		change(h)
		text, err := thrift.Marshal(new(thrift.CompactProtocol), h)
		if err != nil {
			t.Fatal(err)
		}
		file := append(text, make([]byte, contents)...)
		c := &format.ColumnMetaData{Codec: format.Uncompressed, TotalCompressedSize: int64(len(text)) + size}
		return checkPages(bytes.NewReader(file), int64(len(file)), c, parquet.LeafColumn{})
	}
	const most = maxPage + maxPageHeader
	for _, c := range []struct {
		name     string
		change   func(h *head)
		contents int
		want     string
	}{
		{"a page", func(h *head) { h.CompressedPageSize = 10 }, 10, ""},
		{"a page that is longer than its column", func(h *head) { h.CompressedPageSize = 11 }, 10, "11 bytes from"},
		{"a negative length", func(h *head) { h.CompressedPageSize = -1 }, 10, "-1 bytes from"},
		{"no bytes", func(h *head) {}, 0, ""},
		{"the longest unpacked page", func(h *head) { h.UncompressedPageSize = maxPage }, 0, ""},
		{"a longer one", func(h *head) { h.UncompressedPageSize = maxPage + 1 }, 0, "67108865 bytes unpacked, 67108864 at most"},
		{"a negative unpacked length", func(h *head) { h.UncompressedPageSize = -1 }, 0, "-1 bytes unpacked"},
		{"most values", func(h *head) { h.DictionaryPageHeader.V.NumValues = maxPageValues }, 0, ""},
		{"more values", func(h *head) { h.DictionaryPageHeader.V.NumValues = maxPageValues + 1 }, 0, "16777217 values, 16777216 at most"},
		{"the longest page", func(h *head) { h.CompressedPageSize = most }, most, ""},
		{"a longer page", func(h *head) { h.CompressedPageSize = most + 1 }, most + 1, "67174401 bytes, 67108864 at most"},
	} {
		err := check(c.change, int64(c.contents), c.contents)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "a page is broken: "+c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if err := check(func(h *head) {}, 1, 0); err == nil || !strings.Contains(err.Error(), "in a file of") {
		t.Errorf("a column that is longer than the file: %v", err)
	}
}

// TestDictionaryEncodings: the values of a dictionary are plain, under the encoding's old name too. A
// dictionary that cannot be unpacked is an error, whatever its encoding.
func TestDictionaryEncodings(t *testing.T) {
	for encoding, want := range map[format.Encoding]string{format.Plain: "", plainDictionary: "", format.RLE: "a page is broken: a dictionary is encoded by RLE", format.RLEDictionary: "a page is broken: a dictionary is encoded by RLE_DICTIONARY"} {
		h := &format.PageHeader{}
		h.DictionaryPageHeader.Valid = true
		h.DictionaryPageHeader.V.Encoding = encoding
		err := checkValues(h, []byte("abcd"), format.Uncompressed, parquet.LeafColumn{})
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%v: %v, want %q", encoding, err, want)
		}
		if err := checkValues(h, []byte("abcd"), format.Gzip, parquet.LeafColumn{}); err == nil || strings.Contains(err.Error(), "dictionary") {
			t.Errorf("%v, not packed by gzip: %v", encoding, err)
		}
	}
}
