package cli_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/cli"
)

// A fullDisk takes no bytes.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// Programs read each line of such a log.
func TestTheErrorThatEndsAServerIsALineOfItsJSONLog(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for args, want := range map[string]struct {
		status int
		says   string
	}{
		"--store redis://127.0.0.1:1/0": {1, "127.0.0.1:1"},
		"--store memory: --http x":      {2, "--http"},
		"--store memory: --linger 2h":   {2, "--linger"},
		"--config nothing.yaml":         {1, "nothing.yaml"},
	} {
		var errs strings.Builder
		if got := cli.Main(strings.Fields("serve --log json "+args), os.Stdin, io.Discard, &errs); got != want.status {
			t.Errorf("%s: exit status %d", args, got)
		}
		ends := 0
		for line := range strings.Lines(errs.String()) {
			var record struct{ Level, Msg, Error string }
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Errorf("%s: %v: %s", args, err, line)
			}
			if record.Level == "ERROR" && record.Msg != "" && strings.Contains(record.Error, want.says) {
				ends++
			}
		}
		if ends != 1 {
			t.Errorf("%s: %s", args, errs.String())
		}
	}
}

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, args := range []string{"", "--help", "help", "help next", "next --help", "rehearse", "version", "layout", "next", "token"} {
		var errs strings.Builder
		if got := cli.Main(strings.Fields(args), os.Stdin, fullDisk{}, &errs); got != 1 || !strings.Contains(errs.String(), "firn: no space left\n") {
			t.Errorf("firn %s: exit status %d, %s", args, got, errs.String())
		}
		if got := cli.Main(strings.Fields(args), os.Stdin, io.Discard, &errs); got != 0 {
			t.Errorf("firn %s: exit status %d, %s", args, got, errs.String())
		}
	}
}
