package main

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/firn-id/firn/cmd/firn/internal/cli"
)

// TestMain lets scripts and tests run this test binary as firn.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"firn": func() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the sessions in testdata/script, each with a state folder of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
			env.Setenv("YEAR", strconv.Itoa(time.Now().UTC().Year()))
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
