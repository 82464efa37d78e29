//go:build unix && !linux

package respapi

import (
	"errors"
	"io"
	"syscall"
)

// readNow reads the available bytes. Full: there may be more.
func (c *conn) readNow(fd uintptr) (n int, full bool, err error) {
	for to := c.space(); ; {
		n, err := syscall.Read(int(fd), to)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, false, err
		case n == 0:
			return 0, false, io.EOF
		default:
			return n, n == len(to), nil
		}
	}
}

// writeNow writes as much as there is room for. Errors show when the rest is written.
func writeNow(fd uintptr, b []byte) int {
	for {
		n, err := syscall.Write(int(fd), b)
		if !errors.Is(err, syscall.EINTR) {
			return max(n, 0)
		}
	}
}
