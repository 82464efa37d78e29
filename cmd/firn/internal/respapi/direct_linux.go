package respapi

import (
	"io"
	"syscall"
	"unsafe"
)

// The descriptor is not blocking, so that these calls return at once, and the scheduler
// need not be told of them. If it is, it takes the processor away from a thread that the
// kernel runs something else on meanwhile, as the client that was just woken, and
// starts another: at one command a batch that cost a fifth of the throughput.

// readNow reads what is there, into to, which is not empty.
func readNow(fd uintptr, to []byte) (int, error) {
	for {
		n, _, err := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(to))), uintptr(len(to)))
		switch {
		case err == syscall.EINTR:
		case err != 0:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return int(n), nil
		}
	}
}

// writeNow writes as much as there is room for. Errors show when the rest is written.
func writeNow(fd uintptr, b []byte) int {
	for {
		n, _, err := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch err {
		case 0:
			return int(n)
		case syscall.EINTR:
		default:
			return 0
		}
	}
}
