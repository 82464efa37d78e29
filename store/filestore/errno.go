//go:build !windows

package filestore

import "syscall"

// The operating system's errors that have a way out.
var (
	readOnly = errnos{syscall.EROFS}
	full     = errnos{syscall.ENOSPC, syscall.EDQUOT}
	tooMany  = errnos{syscall.EMFILE, syscall.ENFILE}
	inUse    = errnos{}
	broken   = errnos{syscall.EIO}
)
