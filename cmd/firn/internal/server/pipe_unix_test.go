//go:build unix

package server_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// The pipe has no writer, so a follower that opened it would wait for ever.
func TestAFollowedFileMayBecomeAPipe(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\n")
	v.turn()
	if err := errors.Join(os.Remove(v.file), syscall.Mkfifo(v.file, 0o600)); err != nil {
		t.Fatal(err)
	}
	v.hangup()
	v.log.has(t, "is not a regular file")
	if err := os.Remove(v.file); err != nil {
		t.Fatal(err)
	}
	write(t, v.file, "namespaces: {orders: {}, items: {}}\n")
	v.hangup()
	v.log.has(t, `msg="in force: configuration" cause=SIGHUP`)
}
