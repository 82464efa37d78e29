package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

func TestOnlyRegularFilesOfABoundedSizeAreRead(t *testing.T) {
	folder := t.TempDir()
	large, exact, link := filepath.Join(folder, "large"), filepath.Join(folder, "exact"), filepath.Join(folder, "link")
	for file, size := range map[string]int64{large: 3 << 30, exact: 1 << 20} {
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(exact, link); err != nil {
		t.Fatal(err)
	}
	var outside *firn.RangeError
	if _, err := settings.ReadFile(large); !errors.As(err, &outside) || !strings.Contains(err.Error(), large) || !strings.Contains(err.Error(), "3221225472 is out of range: 0 to 1048576") {
		t.Errorf("a large file: %v", err)
	}
	for _, file := range []string{exact, link} {
		if text, err := settings.ReadFile(file); err != nil || len(text) != 1<<20 {
			t.Errorf("%s: %d bytes, %v", file, len(text), err)
		}
	}
	for _, file := range []string{folder, os.DevNull} {
		if _, err := settings.ReadFile(file); err == nil || !strings.Contains(err.Error(), file+" is not a regular file") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
