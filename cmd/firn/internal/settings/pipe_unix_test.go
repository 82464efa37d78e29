//go:build unix

package settings_test

import (
	"os"
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
	if _, err := settings.ReadKeys(pipe, "", settings.ReadFile); err == nil || !strings.Contains(err.Error(), "key file: "+pipe+" is not a regular file") {
		t.Error(err)
	}
}

// As a shell makes for firn veil --key-file <(COMMAND).
func TestACommandMayReadKeysFromAPipe(t *testing.T) {
	for text, want := range map[string]string{
		"1:000102030405060708090a0b0c0d0e0f\n": "",
		strings.Repeat("#", 2<<20):             "is out of range",
		strings.Repeat("#", 70<<10):            "not a file of keys",
	} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		go func() { _ = os.WriteFile(pipe, []byte(text), 0) }() // fails if the reader has enough
		keys, err := settings.ReadKeys(pipe, "", settings.ReadOnce)
		if want == "" && (err != nil || len(keys) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d bytes: %v, %v", len(text), keys, err)
		}
	}
}
