//go:build linux || openbsd || dragonfly

package filestore

import "syscall"

func changeTime(s *syscall.Stat_t) syscall.Timespec { return s.Ctim }
