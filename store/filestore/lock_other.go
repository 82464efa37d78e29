//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package filestore

import (
	"fmt"
	"os"
	"runtime"

	"github.com/firn-id/firn/store"
)

// lock refuses: without a lock, two processes would write at once.
func lock(*os.File) (bool, error) {
	return false, fmt.Errorf("%w: filestore does not know how %s locks files: use another store", store.ErrRefused, runtime.GOOS)
}

func unlock(*os.File) {}

func identity(*os.File) (string, error) { return "", nil }

func machineID() string { return "" }
