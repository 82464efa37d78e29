//go:build !unix

package storeurl

import "os"

// access reports whether a file may be read and written.
func access(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
