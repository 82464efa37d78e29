package filestore

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

// fileSystemOf follows links and drive letters, behind which a network share may be.
func fileSystemOf(path string) (fileSystem, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileSystem{}, err
	}
	found, err := fileSystemAt(f)
	return found, errors.Join(err, f.Close())
}

// fileSystemAt is [fileSystemOf] an open file.
func fileSystemAt(f *os.File) (fileSystem, error) {
	final := make([]uint16, 1<<15) // the longest path
	n, _, err := finalPathName.Call(f.Fd(), uintptr(unsafe.Pointer(&final[0])), uintptr(len(final)), 0)
	if n == 0 || n > uintptr(len(final)) {
		return fileSystem{}, &os.PathError{Op: "GetFinalPathNameByHandle", Path: f.Name(), Err: err}
	}
	return onDrive(syscall.UTF16ToString(final))
}

// onDrive judges a final path: \\?\C:\folder, or \\?\UNC\server\share\folder.
func onDrive(final string) (fileSystem, error) {
	drive, _, _ := strings.Cut(strings.TrimPrefix(final, `\\?\`), `\`)
	root, err := syscall.UTF16PtrFromString(drive + `\`)
	if err != nil {
		return fileSystem{}, err
	}
	const remote = 4
	if kind, _, _ := getDriveType.Call(uintptr(unsafe.Pointer(root))); kind == remote || drive == "UNC" {
		return fileSystem{"a network drive", true}, nil
	}
	return fileSystem{}, nil
}
