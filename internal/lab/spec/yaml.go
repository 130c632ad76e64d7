package spec

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/tree"
	"github.com/p4lb/p4lb/internal/text/units"
)

// Time is a duration in the notation of files: 500us, 1.5ms, 2s.
type Time time.Duration

// UnmarshalText reads a time.
func (t *Time) UnmarshalText(text []byte) error { return t.parse(string(text)) }

func (t *Time) parse(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("time %q: want a time such as 500us, 1.5ms or 2s", text)
	}
	if d > maxTime {
		return fmt.Errorf("time %q: want %.0f hours at most", text, maxTime.Hours())
	}
	*t = Time(d)
	return nil
}

// maxTime is the longest duration in a file. Sums and multiples of it do not overflow.
const maxTime = 1000 * time.Hour

// String returns the duration in the notation of files.
func (t Time) String() string { return fabric.FormatDelay(time.Duration(t)) }

// MarshalText writes what String writes.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Size is a number of bytes in the notation of files: 1500, 64KB or 9MiB.
type Size int64

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error { return s.Parse(string(text)) }

// Parse parses a size in the notation of files. Without a unit it is in bytes.
func (s *Size) Parse(text string) error {
	v, ok := units.Sizes.Parse(text)
	if !ok {
		v, ok = units.Sizes.Parse(text + "B")
	}
	if !ok || v < 1 || v >= 1e12 {
		return fmt.Errorf("size %q: want bytes such as 1500, 64KB, 1MB or 9MiB", text)
	}
	*s = Size(v)
	return nil
}

// String returns the size in the notation of files.
func (s Size) String() string {
	switch {
	case s >= 1e6 && s%1e5 == 0:
		return Number(float64(s)/1e6) + "MB"
	case s >= 1e3 && s%100 == 0:
		return Number(float64(s)/1e3) + "KB"
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText writes what String writes.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Cut is the limit for flow sizes from a distribution in the notation of files: 2MB, or none.
type Cut Size

// Uncut does not limit flow sizes.
const Uncut = Cut(-1)

// UnmarshalText reads a size, or none.
func (c *Cut) UnmarshalText(text []byte) error { return c.Parse(string(text)) }

// Parse parses a limit in the notation of files. 0 means none.
func (c *Cut) Parse(text string) error {
	if text == "none" || text == "0" {
		*c = Uncut
		return nil
	}
	return (*Size)(c).Parse(text)
}

// String returns the cut as a file writes it.
func (c Cut) String() string {
	if c < 0 {
		return "none"
	}
	return Size(c).String()
}

// MarshalText writes what String returns.
func (c Cut) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// A Threshold is the queue length in packets from which a queue marks. 0 leaves the choice to the
// transport.
type Threshold int

// never is the threshold of queues that never mark.
const never = Threshold(-1)

// UnmarshalText reads a number of packets, or none.
func (t *Threshold) UnmarshalText(text []byte) error { return t.Parse(string(text)) }

// Parse parses a threshold in the notation of files. none and 0 mean never.
func (t *Threshold) Parse(text string) error {
	v, err := strconv.Atoi(text)
	if text == "none" {
		v, err = 0, nil
	}
	if err != nil || v < 0 || v > maxThreshold {
		return fmt.Errorf("threshold %q: want a number of packets, or none", text)
	}
	*t = Threshold(v)
	if v == 0 {
		*t = never
	}
	return nil
}

// maxThreshold is more packets than any queue holds.
const maxThreshold = 1e9

// Bitrate is a rate as a file writes it: 400Mbps, 40G.
type Bitrate fabric.Rate

// UnmarshalText reads a rate.
func (r *Bitrate) UnmarshalText(text []byte) error {
	v, err := fabric.ParseRate(string(text))
	*r = Bitrate(v)
	return err
}

// MarshalText writes the rate as a file writes it.
func (r Bitrate) MarshalText() ([]byte, error) { return fabric.Rate(r).MarshalText() }

// UnmarshalText reads a time or a share such as 5%.
func (w *Warmup) UnmarshalText(text []byte) error { return w.parse(string(text)) }

func (w *Warmup) parse(text string) error {
	w.given = true
	if text == "0" {
		return nil
	}
	share, ok := strings.CutSuffix(text, "%")
	if !ok {
		return w.Time.parse(text)
	}
	v, err := strconv.ParseFloat(share, 64)
	if err != nil || !(v >= 0 && v < 100) {
		return fmt.Errorf("warm-up %q: want a time, or a share below 100%%", text)
	}
	w.Share = v / 100
	return nil
}

// MarshalText writes the warm-up as a file writes it.
func (w Warmup) MarshalText() ([]byte, error) {
	if w.Time > 0 {
		return w.Time.MarshalText()
	}
	return []byte(Number(w.Share*100) + "%"), nil
}

// UnmarshalNode reads a load, as 0.7 or 70%. In JSON a load is a plain number, so
// LoadLevel must not implement encoding.TextUnmarshaler.
func (l *LoadLevel) UnmarshalNode(n tree.Node) error {
	if n.Kind != tree.Scalar {
		return fmt.Errorf("want a load such as 0.7, not %v", n.Kind)
	}
	return l.Parse(n.Text)
}

// Parse reads a load as a file writes it.
func (l *LoadLevel) Parse(text string) error {
	in, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(in, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v <= 1) {
		return fmt.Errorf("load %s: want a share above 0 and up to 1, such as 0.7", text)
	}
	*l = LoadLevel(v)
	return nil
}

// UnmarshalNode reads the number of seeds or the seeds themselves.
func (s *Seeds) UnmarshalNode(n tree.Node) error {
	if n.Kind == tree.Scalar && n.Word {
		list, err := ParseSeeds(n.Text)
		*s = list
		return err
	}
	count, err := strconv.Atoi(n.Text)
	if n.Kind == tree.Scalar && err == nil && count >= 1 && count <= maxSeeds {
		*s = FirstSeeds(count)
		return nil
	}
	if list, ok := seedList(n.Items); ok {
		*s = list
		return nil
	}
	return fmt.Errorf("want a number of seeds up to %d, or a list of different seeds from 1 to 2^64-1 such as [1, 2, 3]", maxSeeds)
}

// ParseSeeds reads a number of seeds, such as 5, or a list of seeds, such as 3,5,8-12.
func ParseSeeds(text string) (Seeds, error) {
	wrong := fmt.Errorf("seeds %q: want a number of seeds up to %d, or a list such as 3,5,8-12", text, maxSeeds)
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > maxSeeds {
			return nil, wrong
		}
		return FirstSeeds(n), nil
	}
	var list Seeds
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.ParseUint(first, 10, 64)
		b := a
		if isRange && err == nil {
			b, err = strconv.ParseUint(last, 10, 64)
		}
		if err != nil || a == 0 || b < a || b-a >= maxSeeds {
			return nil, wrong
		}
		for s := a; ; s++ {
			if slices.Contains(list, s) || len(list) == maxSeeds {
				return nil, wrong
			}
			if list = append(list, s); s == b {
				break
			}
		}
	}
	return list, nil
}

// maxSeeds bounds the seeds of an experiment.
const maxSeeds = 1000

// maxFaults is the maximum number of faults of a case; each failed link requires a new
// plan.
const maxFaults = 10_000

// seedList reads the seeds themselves.
func seedList(items []tree.Node) (list Seeds, ok bool) {
	for _, item := range items {
		seed, err := strconv.ParseUint(item.Text, 10, 64)
		if err != nil || item.Word || seed == 0 || slices.Contains(list, seed) {
			return nil, false
		}
		list = append(list, seed)
	}
	return list, len(list) > 0 && len(list) <= maxSeeds
}

// FirstSeeds returns the seeds from 1 to n.
func FirstSeeds(n int) Seeds {
	var s Seeds
	for i := 1; i <= n; i++ {
		s = append(s, uint64(i))
	}
	return s
}

// UnmarshalNode reads the name of a preset or file, or a generated topology.
func (n *Network) UnmarshalNode(node tree.Node) error {
	type maker Network
	return shortOrLong(node, &n.Name, (*maker)(n))
}

// UnmarshalNode reads the name of a scheme, or a scheme with its parameters.
func (s *Scheme) UnmarshalNode(node tree.Node) error {
	type long Scheme
	return shortOrLong(node, &s.Scheme, (*long)(s))
}

// UnmarshalNode reads a transport's name, or the transport with its constants.
func (t *TransportSpec) UnmarshalNode(node tree.Node) error {
	type long TransportSpec
	return shortOrLong(node, &t.Kind, (*long)(t))
}

// shortOrLong reads a name, or the mapping that the name abbreviates.
func shortOrLong(n tree.Node, name *string, long any) error {
	if n.Kind == tree.Scalar && n.Word {
		return n.Decode(name)
	}
	return n.Decode(long)
}

// A FileError is a mistake in an experiment with its position.
type FileError struct {
	File string
	Line int    // 0: not known
	Key  string // such as traffic[0].workload
	Msg  string
	err  error // the underlying error; nil: Msg is complete
}

// Unwrap returns the error without its position; it may have a hint.
func (e *FileError) Unwrap() error { return e.err }

// Error returns the mistake as one line, such as exp.yaml:7: loads[1]: load 1.2: …
func (e *FileError) Error() string {
	s := e.File
	if e.Line > 0 {
		s = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Key != "" {
		s += ": " + e.Key
	}
	return s + ": " + e.Msg
}

// A source is the text of an experiment with the lines of its keys.
type source struct {
	file string
	root tree.Node
}

// wrong returns an error about a key, given as a path such as loads[1].
func (s *source) wrong(key string, err error) error {
	msg, _, _ := strings.Cut(err.Error(), "\n")
	e := &FileError{File: s.file, Key: key, Msg: msg, err: err}
	e.Line = s.line(key)
	return e
}

// has reports whether the text has a key.
func (s *source) has(key string) bool {
	_, ok := s.root.At(key)
	return ok
}

// line returns the line of a key, or of the enclosing key; 0: not known.
func (s *source) line(key string) int {
	if top := strings.FieldsFunc(key, func(r rune) bool { return r == '.' || r == '[' }); len(top) == 0 || !s.has(top[0]) {
		return 0
	}
	n, _ := s.root.At(key)
	return n.Line
}

// decode reads the text into x. Unknown keys are errors.
func decode(file string, text []byte, x *Experiment) (*source, error) {
	root, err := tree.Unmarshal(text, x)
	if err != nil {
		e := &FileError{File: file, Msg: err.Error()}
		if at, ok := errors.AsType[*tree.Error](err); ok {
			e.Line, e.Key = at.Line, at.Key
		}
		e.Msg, _, _ = strings.Cut(e.Msg, "\n")
		return nil, e
	}
	return &source{file, root}, nil
}

// Number formats a number as briefly as possible.
func Number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
