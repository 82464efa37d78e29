package cli_test

import (
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
