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
	return readFile(path, syscall.O_NONBLOCK) // otherwise opening a pipe waits for its writer
}

// ReadOnce is ReadFile for a command, which reads the file once: it may be a pipe too, as a shell makes for <(COMMAND).
func ReadOnce(path string) ([]byte, error) { return readFile(path, 0) }

func readFile(path string, mode int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|mode, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if pipe := info.Mode()&os.ModeNamedPipe != 0 && mode&syscall.O_NONBLOCK == 0; !info.Mode().IsRegular() && !pipe {
		return nil, fmt.Errorf("%s is not a regular file (%s): name a file that can be read again when it changes", path, info.Mode())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if size := max(info.Size(), int64(len(text))); err == nil && size > maxFile {
		return nil, fmt.Errorf("%s: %w", path, firn.NewRangeError("size of the file in bytes", size, 0, maxFile, "name another file, or divide what is in it"))
	}
	return text, err
}
