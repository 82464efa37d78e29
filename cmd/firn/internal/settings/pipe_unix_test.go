//go:build unix

package settings_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// The pipe has no writer, so a reader would wait for ever.
func TestAPipeIsNoConfigurationAndHasNoKeys(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := settings.Read(pipe); err == nil || !strings.Contains(err.Error(), "configuration: "+pipe+" is not a regular file") {
		t.Error(err)
	}
	if _, err := settings.ReadKeys(pipe, ""); err == nil || !strings.Contains(err.Error(), "key file: "+pipe+" is not a regular file") {
		t.Error(err)
	}
}
