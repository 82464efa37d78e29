package filestore

// The operating system's errors that have a way out, by their numbers in winerror.h.
var (
	readOnly = errnos{19}                         // ERROR_WRITE_PROTECT
	full     = errnos{39, 112, 1295}              // ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL, ERROR_DISK_QUOTA_EXCEEDED
	tooMany  = errnos{4}                          // ERROR_TOO_MANY_OPEN_FILES
	inUse    = errnos{32, 33}                     // ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION
	broken   = errnos{23, 29, 30, 1117, 1127, 21} // ERROR_CRC, _WRITE_FAULT, _READ_FAULT, _IO_DEVICE, _DISK_OPERATION_FAILED, _NOT_READY
)
