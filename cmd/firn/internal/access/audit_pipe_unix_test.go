//go:build unix

package access_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// The pipe has no reader, so opening it would wait for ever, and requests for their records.
func TestTheAuditLogIsARegularFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	_, opened := access.OpenAuditFile(pipe, func(error) {})
	for _, err := range []error{opened, access.CheckAuditFile(pipe), access.CheckAuditFile("/dev/full")} {
		if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
			t.Error(err)
		}
	}
}
