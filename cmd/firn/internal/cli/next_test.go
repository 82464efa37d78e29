package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
)

// An interrupting writer interrupts what writes, at the first byte.
type interrupting struct {
	bytes.Buffer
	interrupt context.CancelFunc
}

func (w *interrupting) Write(p []byte) (int, error) {
	w.interrupt()
	return w.Buffer.Write(p)
}

func TestJSONIsWholeWhenInterrupted(t *testing.T) {
	for _, test := range []struct {
		kind string
		args []string
	}{
		{"snowflake", nil},
		{"uuid", nil},
		{"segment", []string{"--name", "a"}},
		{"sequence", []string{"--name", "a"}},
		{"number", []string{"--name", "b", "--template", "{n:9}"}},
	} {
		t.Run(test.kind, func(t *testing.T) {
			url := "sqlite:" + filepath.Join(t.TempDir(), "firn.db")
			s, err := storeurl.Create(t.Context(), url)
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("FIRN_STORE", url)
			ctx, interrupt := context.WithCancel(context.Background())
			defer interrupt()
			out := interrupting{interrupt: interrupt}
			args := append([]string{"next", "--json", "-n", "1000000", "--kind", test.kind}, test.args...)
			root := newRoot(args)
			root.SetArgs(args)
			root.SetOut(&out)
			root.SetErr(t.Output())
			if err := root.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("interrupted: %v", err)
			}
			var document struct{ IDs []string }
			if err := json.Unmarshal(out.Bytes(), &document); err != nil {
				t.Fatalf("%d bytes, which end in %q: %v", out.Len(), out.Bytes()[max(0, out.Len()-40):], err)
			}
			if n := len(document.IDs); n == 0 || n == 1_000_000 {
				t.Errorf("%d ids were listed", n)
			}
		})
	}
}

func TestAFailedWriteIsToldOnce(t *testing.T) {
	full := errors.New("no space left on device")
	p := newPrinter(failing{full}, true)
	if err := p.add(func(dst []byte) ([]byte, error) { return append(dst, '1'), nil }); err != nil {
		t.Fatal(err)
	}
	if err := p.ending(p.flush()); err == nil || err.Error() != full.Error() {
		t.Errorf("%v, want %v", err, full)
	}
}

// A failing writer writes nothing.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
