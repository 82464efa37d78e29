package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store/memstore"
)

// Otherwise the first customer's request would show it.
func TestAServerWarnsOfACounterOfAnotherKind(t *testing.T) {
	s := memstore.New(nil)
	all, err := segment.New(segment.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	txn, err := all.Namespace("txn")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := txn.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := all.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for kind, warns := range map[string]bool{"sequence": true, "segment": false} {
		cfg, err := settings.Parse("firn.yaml", []byte("namespaces: {txn: {kind: "+kind+"}, items: {kind: segment}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		warn(t.Context(), s, cfg, slog.New(slog.NewTextHandler(&log, nil)))
		if strings.Contains(log.String(), "no ids of txn can be made") != warns || strings.Contains(log.String(), "items") {
			t.Errorf("%s: %s", kind, log.String())
		}
	}
}
