package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

// nowhere is a response writer that discards the answer.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}

// BenchmarkIDs is what the server adds to a request: its cost beside that of net/http.
func BenchmarkIDs(b *testing.B) {
	cfg := settings.Config{Namespaces: map[string]settings.Namespace{
		"orders": {Pooled: settings.Pooled{Layout: "41/0/0/22"}}, // more ids a millisecond than the benchmark can request
		"items":  {Kind: "segment"},
	}}
	s, err := server.New(b.Context(), server.Config{Settings: cfg, Base: lease.Config{}, Store: memstore.New(nil), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		namespace, accept string
		count             int
	}{
		{"orders", "application/json", 1}, {"items", "application/json", 1},
		{"orders", "application/json", 1000}, {"orders", "text/plain", 1000}, {"items", "text/plain", 1000},
	} {
		b.Run(fmt.Sprintf("%s/%s/%d", c.namespace, c.accept, c.count), func(b *testing.B) {
			target := "/v1/ids/" + c.namespace
			if c.count > 1 {
				target += fmt.Sprintf("?count=%d", c.count)
			}
			r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, target, nil)
			if err != nil {
				b.Fatal(err)
			}
			r.Header.Set("Accept", c.accept)
			r.RemoteAddr, r.Host = "127.0.0.1:9", "127.0.0.1"
			client := share.New(share.Limits{HTTP: 1, Redis: 1, Requests: 100, Percent: 100}).Client(r.RemoteAddr) // as of a connection
			r = r.WithContext(share.With(r.Context(), client))
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
			answer := httptest.NewRecorder()
			if s.Handler().ServeHTTP(answer, r); answer.Code != http.StatusOK {
				b.Fatal(answer.Body)
			}
			w := nowhere{http.Header{}}
			h := s.Handler()
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.count), "ns/id")
		})
	}
}
