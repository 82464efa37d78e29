package sql

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets four tests run at once: they wait for servers, and leave the processors idle.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
