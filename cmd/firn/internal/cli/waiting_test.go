package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestACommandSaysWhatItWaitsForAlsoWithoutATerminal(t *testing.T) {
	var flags generatorFlags
	flags.add(&cobra.Command{}, time.Second)
	var stderr bytes.Buffer
	cfg, err := flags.config(&stderr)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Log.Info("waiting for holders", "for", 12*time.Second, "because", "the pool is new")
	cfg.Log.Info("worker leased", "worker", 7)
	cfg.Log.Warn("worker lost", "worker", 7)
	if got, want := stderr.String(), "firn: waiting for holders, for 12s, because the pool is new\nfirn: worker lost, worker 7\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
