//go:build unix

package cli

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"testing"
)

func TestASignalIsNamedAsAnInterruption(t *testing.T) {
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	cause := interruption{context.Cause(ctx)}
	if cause.Error() != "interrupted by SIGTERM" || !errors.Is(cause, context.Canceled) {
		t.Errorf("got %q, which is canceled: %v", cause, errors.Is(cause, context.Canceled))
	}
}
