package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The configuration is so large that it is still being parsed when the kernel has counted its bytes as read. It ends with
// a mistake, so that the process ends by itself.
func TestASIGHUPWhileTheConfigurationIsReadForTheFirstTimeIsIgnored(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "firn.yaml")
	var text strings.Builder
	text.WriteString("store: 'memory:'\nnamespaces:\n")
	for i := range 4000 {
		fmt.Fprintf(&text, "  n%d: {kind: uuid} # %s\n", i, strings.Repeat("x", 200))
	}
	text.WriteString("mistake: 1\n")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := firnCommand(ctx, folder, "serve", "--config", file)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for read := 0; read < text.Len(); {
		counts, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(string(counts), "rchar: %d", &read); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), "mistake") {
		t.Errorf("%v: %s", err, errs.String())
	}
}
