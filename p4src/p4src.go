// Package p4src holds P4_16 as files: the libraries that programs include.
package p4src

import (
	"embed"
	"io/fs"
)

//go:embed include/*.p4
var files embed.FS

// Include returns the files that every program may include: core.p4, and for each
// architecture v1model.p4, tna.p4 or t2na.p4.
func Include() fs.FS {
	sub, err := fs.Sub(files, "include")
	if err != nil {
		panic(err) // the name above is a valid path
	}
	return sub
}
