package server_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

var warning = regexp.MustCompile(`level=WARN msg=("(?:[^"\\]|\\.)*"|\S+)`)

func TestWhateverAServerWarnsOfAtItsStartIsAFindingOfDoctor(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.issue("server", 1, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	into(t, folder, cert, key)
	layout := firn.DefaultLayout()
	epoch := time.Now().Add(time.Hour - layout.End().Sub(layout.Epoch())).UTC().Format(time.RFC3339)
	text := tlsKeys(folder, "") + fmt.Sprintf("anonymous: [nothing]\nlimits: {connections: 1000000}\nnamespaces: {orders: {pool: old, epoch: %q}}\n", epoch)
	file := filepath.Join(t.TempDir(), "firn.yaml")
	write(t, file, text)
	v := serveFile(t, file)
	v.turn()
	cfg, err := settings.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	found, err := server.CheckFiles(cfg)
	if err != nil {
		t.Fatal(err)
	}
	found = slices.Concat(found, issuing.Examine(t.Context(), memstore.New(nil), cfg), server.Examine(cfg, v.addr, v.redis, v.grpc))
	var warned [][]string
	eventually(t, "a server warns of its certificate, layout, descriptors and access", func() bool {
		warned = warning.FindAllStringSubmatch(v.log.String(), -1)
		return len(warned) >= 4
	})
	for _, w := range warned {
		said := w[1]
		if text, err := strconv.Unquote(said); err == nil {
			said = text
		}
		if !slices.ContainsFunc(found, func(f store.Finding) bool {
			return f.Verdict != store.Good && (said == f.Says || f.Advice != "" && strings.Contains(said, f.Advice)) // the library logs the end of a layout
		}) {
			t.Errorf("a server warns %q, and doctor finds only %+v", said, found)
		}
	}
	if len(warned) != 4 {
		t.Errorf("a server warns of %d things, not of its certificate, layout, descriptors and access: %s", len(warned), v.log.String())
	}
}
