package plain

import (
	"os"
	"sync"
)

// temps are the temporary files and folders to be removed if the process ends
// early.
var temps struct {
	sync.Mutex
	names map[string]bool
}

// Temp records a temporary file or folder. The returned function must be called
// when it has been removed or given its final name.
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

// RemoveTemps removes all temporary files and folders. It keeps the lock, so
// that later calls of Temp block until the process ends.
func RemoveTemps() {
	temps.Lock()
	for name := range temps.names {
		os.RemoveAll(name)
	}
}
