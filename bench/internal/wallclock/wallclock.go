// Package wallclock moves the wall clock of one running process, and of no other.
//
// A Go program reads its clocks through the vDSO, a page of code that the kernel
// maps into each process. [Move] overwrites clock_gettime there, in that process
// alone, with a routine that makes the system call and adds an offset to the wall
// clock. The monotonic clock stays as it is. It works on Linux on x86-64, for
// processes that the caller may trace; nothing in the process has to cooperate.
package wallclock
