package filestore

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel32         = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx       = kernel32.NewProc("LockFileEx")
	fileInformation  = kernel32.NewProc("GetFileInformationByHandleEx")
	finalPathName    = kernel32.NewProc("GetFinalPathNameByHandleW")
	getDriveType     = kernel32.NewProc("GetDriveTypeW")
	errLockViolation = syscall.Errno(33)
)

// lock takes the lock of a file, unless another process has it. It is an operating system lock,
// released when the file is closed or the process ends. A locked byte cannot be read through another
// handle, so the byte is far behind the content.
func lock(f *os.File) (bool, error) {
	const exclusive, failImmediately = 2, 1
	at := syscall.Overlapped{OffsetHigh: 1 << 30}
	ok, _, err := lockFileEx.Call(f.Fd(), exclusive|failImmediately, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case ok != 0:
		return true, nil
	case errors.Is(err, errLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return false, nil
	}
	return false, &os.PathError{Op: "LockFileEx", Path: f.Name(), Err: err}
}

// unlock leaves it to closing: no child has the handle.
func unlock(*os.File) {}

// identity distinguishes a file from its copies, by its volume and file number, its creation and its
// last change. Unlike the time of the last write, a copy does not preserve the time of the last change.
func identity(f *os.File) (string, error) {
	var file syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &file); err != nil {
		return "", &os.PathError{Op: "GetFileInformationByHandle", Path: f.Name(), Err: err}
	}
	var basic struct { // FILE_BASIC_INFO
		created, accessed, written, changed int64
		attributes                          uint32
	}
	const basicInfo = 0
	ok, _, err := fileInformation.Call(f.Fd(), basicInfo, uintptr(unsafe.Pointer(&basic)), unsafe.Sizeof(basic))
	if ok == 0 {
		return "", &os.PathError{Op: "GetFileInformationByHandleEx", Path: f.Name(), Err: err}
	}
	return fmt.Sprintf("%d:%d:%d %d %d", file.VolumeSerialNumber, file.FileIndexHigh, file.FileIndexLow, basic.created, basic.changed), nil
}

// machineID is the number that the installation of Windows drew.
func machineID() string {
	var key syscall.Handle
	path, _ := syscall.UTF16PtrFromString(`SOFTWARE\Microsoft\Cryptography`)
	if err := syscall.RegOpenKeyEx(syscall.HKEY_LOCAL_MACHINE, path, 0, syscall.KEY_READ|keyWow6464, &key); err != nil {
		return ""
	}
	defer func() { _ = syscall.RegCloseKey(key) }()
	var text [64]uint16
	name, _ := syscall.UTF16PtrFromString("MachineGuid")
	size := uint32(unsafe.Sizeof(text))
	if err := syscall.RegQueryValueEx(key, name, nil, nil, (*byte)(unsafe.Pointer(&text)), &size); err != nil {
		return ""
	}
	return syscall.UTF16ToString(text[:])
}

// keyWow6464 has a 32-bit process read the same number as a 64-bit one.
const keyWow6464 = 0x100
