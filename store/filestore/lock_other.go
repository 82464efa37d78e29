//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package filestore

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/firn-id/firn/store"
)

// lock refuses: without a lock, two processes would write at once.
func lock(*os.File) (bool, error) {
	return false, fmt.Errorf("%w: filestore does not know how %s locks files: use another store", store.ErrRefused, runtime.GOOS)
}

func identity(fs.FileInfo) string { return "" }
