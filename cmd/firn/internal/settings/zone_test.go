package settings_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

func TestZonesAreTheSameOnAllMachines(t *testing.T) {
	for text, offset := range map[string]int{
		"": 0, "UTC": 0, "Z": -1, "+08:00": 8 * 3600, "-03:30": -12600, "+23:59": 86340, "+00:00": 0, "Asia/Shanghai": 8 * 3600,
		"local": -1, "Local": -1, "LOCAL": -1, "localtime": -1, "Localtime": -1, "posixrules": -1,
		"+24:00": -1, "-24:00": -1, "+25:00": -1, "+08:61": -1, "+8": -1, "+0800": -1, "08:00": -1, " UTC": -1,
		"../../etc/passwd": -1, "/etc/passwd": -1, "Asia/Shanghai\x00": -1, "亚洲/上海": -1, "Asia": -1, ".": -1,
	} {
		at, err := settings.ParseZone(text)
		if offset < 0 && offset != -12600 {
			if !errors.Is(err, firn.ErrSyntax) || at != nil {
				t.Errorf("%q is %v, %v", text, at, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if _, got := time.Date(2026, 7, 1, 0, 0, 0, 0, at).Zone(); got != offset {
			t.Errorf("%q is %d seconds ahead of UTC, want %d", text, got, offset)
		}
	}
}
