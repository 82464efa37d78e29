package issuing_test

import (
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store/memstore"
)

// BenchmarkIssue is one id from finding the namespace on, without and with rates.
func BenchmarkIssue(b *testing.B) {
	for name, text := range map[string]string{
		"free":    "namespaces: {orders: {layout: 41/0/0/22}}",
		"limited": "namespaces: {orders: {layout: 41/0/0/22}}\nlimits: {rate: {orders: 1000000000/s}}",
	} {
		b.Run(name, func(b *testing.B) {
			cfg, err := settings.Parse("firn.yaml", []byte(text))
			if err != nil {
				b.Fatal(err)
			}
			s, err := issuing.Open(b.Context(), issuing.Config{
				Settings: cfg, Store: memstore.New(nil), Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
			})
			if err != nil {
				b.Fatal(err)
			}
			f := s.Front(issuing.RESP)
			caller, err := f.Identify(access.Credentials{Local: true})
			if err != nil {
				b.Fatal(err)
			}
			var batch issuing.Batch
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Issue(b.Context(), caller, issuing.Ask{Namespace: "orders", Count: 1}, &batch); err != nil {
					b.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
