package settings

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/firn-id/firn"
)

// ReadFile reads a file that the configuration is, or that it names: a regular file of at most 1 MiB. A server reads such
// files again and again. Another file, as a pipe, may never end, or hold the reader for ever; a large one takes the memory
// of the server.
func ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // otherwise opening a pipe waits for its writer
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file (%s): name a file that can be read again when it changes", path, info.Mode())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if size := max(info.Size(), int64(len(text))); err == nil && size > maxFile {
		return nil, fmt.Errorf("%s: %w", path, firn.NewRangeError("size of the file in bytes", size, 0, maxFile, "name another file, or divide what is in it"))
	}
	return text, err
}
