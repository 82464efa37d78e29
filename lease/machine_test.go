package lease_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
	"github.com/firn-id/firn/store/memstore"
)

func TestOnThisMachineLeasesAWorkerOfTheUsersOwnStore(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("container", "podman")
	ctx := context.Background()
	var log bytes.Buffer
	workers := map[int64]bool{}
	logger := slog.New(slog.NewTextHandler(&log, nil))
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(logger)
	for _, given := range []*slog.Logger{logger, nil, logger} {
		l, err := lease.OnThisMachine(ctx, lease.Config{Log: given})
		if err != nil {
			t.Fatal(err)
		}
		workers[l.State().Worker] = true
		if _, err := l.Next(ctx); err != nil {
			t.Error(err)
		}
		defer func() {
			if err := l.Close(ctx); err != nil {
				t.Error(err)
			}
		}()
	}
	if len(workers) != 3 {
		t.Errorf("three leases have workers %v", workers)
	}
	if n := strings.Count(log.String(), "in a container"); n != 3 {
		t.Errorf("%d of three leases in a container say so: %s", n, &log)
	}
}

func TestOnThisMachineIsRefusedWhereItWouldBeUnsafe(t *testing.T) {
	ctx := context.Background()
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	if _, err := lease.OnThisMachine(ctx, lease.Config{}); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "in Kubernetes") {
		t.Errorf("in a pod: %v", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := lease.OnThisMachine(ctx, lease.Config{Store: memstore.New(nil)}); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("with another store: %v", err)
	}
	if entries, err := os.ReadDir(state); err != nil || len(entries) != 0 {
		t.Errorf("it was refused and has made %v, %v", entries, err)
	}
}

// The error names the store that cannot be made.
func TestOnThisMachineReportsAStoreThatCannotBeMade(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	dir := filepath.Join(state, "firn")
	if err := os.WriteFile(dir, []byte("no folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := lease.OnThisMachine(context.Background(), lease.Config{}); err == nil || l != nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v, %v", l, err)
	}
}

// The warning is for containers only: all processes of a machine see its store.
func TestOnlyInAContainerOnThisMachineWarnsOfOtherStores(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("container", "")
	var log bytes.Buffer
	l, err := lease.OnThisMachine(context.Background(), lease.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(context.Background()); err != nil || strings.Contains(log.String(), "in a container") != filestore.InContainer() {
		t.Errorf("%v: %s", err, &log)
	}
}
