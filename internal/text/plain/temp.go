package plain

import (
	"os"
	"sync"
)

// temps are the files and folders that must not stay when the process ends
// before its time: what is written beside its place, until it is complete.
var temps struct {
	sync.Mutex
	names map[string]bool
}

// Temp notes that a file or folder is only for now. The function that it returns
// takes that back, once it is gone or in its place.
func Temp(name string) (placed func()) {
	temps.Lock()
	defer temps.Unlock()
	if temps.names == nil {
		temps.names = map[string]bool{}
	}
	temps.names[name] = true
	return func() {
		temps.Lock()
		defer temps.Unlock()
		delete(temps.names, name)
	}
}

// RemoveTemps removes what is only for now. Who begins anything of the kind from
// then on waits for the end of the process.
func RemoveTemps() {
	temps.Lock()
	for name := range temps.names {
		os.RemoveAll(name)
	}
}
