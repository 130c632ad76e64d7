package spec

import (
	"sync"
)

// files are those that an experiment has read, kept for who repeats it.
type files struct {
	mu    sync.Mutex
	texts map[string]string
}

// reading hands on what read finds, and takes it down; what was read once stays
// as it was.
func (f *files) reading(read Reader) Reader {
	return func(name string) ([]byte, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if text, ok := f.texts[name]; ok {
			return []byte(text), nil
		}
		text, err := read(name)
		if err == nil {
			if f.texts == nil {
				f.texts = map[string]string{}
			}
			f.texts[name] = string(text)
		}
		return text, err
	}
}

// ReadFiles are the files that the experiment has read, by name.
func (x *Experiment) ReadFiles() map[string]string {
	if x.files == nil {
		return nil
	}
	x.files.mu.Lock()
	defer x.files.mu.Unlock()
	return x.files.texts
}

// Reading hands on what read finds, and takes down what the experiment reads.
func (x *Experiment) Reading(read Reader) Reader {
	if x.files == nil {
		return read
	}
	return x.files.reading(read)
}
