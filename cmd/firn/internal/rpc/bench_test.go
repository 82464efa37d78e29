package rpc_test

import (
	"testing"

	"github.com/firn-id/firn/cmd/firn/firnv1"
)

const benchConfig = `
namespaces:
  users: {kind: segment, max_step: 10000000}
  wide:  {layout: 41/0/0/22}
`

var forms = map[string]firnv1.Form{"list": firnv1.Form_FORM_LIST, "runs": firnv1.Form_FORM_RUNS}

func count(n int) *int32 { c := int32(n); return &c }

// BenchmarkGenerate takes 1,000 ids a call, with 8 callers per processor on one connection of
// grpc-go; server and client share the processors.
func BenchmarkGenerate(b *testing.B) {
	overEach(b, func(b *testing.B, over transport) {
		for name, form := range forms {
			for _, namespace := range []string{"users", "wide"} {
				b.Run(namespace+"/"+name, func(b *testing.B) {
					client, _ := start(b, benchConfig, over).dial(b)
					b.SetParallelism(8)
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							if _, err := client.Generate(b.Context(), &firnv1.GenerateRequest{Namespace: namespace, Count: count(1000), Form: form}); err != nil {
								b.Error(err)
								return
							}
						}
					})
					b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "ids/s")
				})
			}
		}
	})
}

// BenchmarkGenerateStream takes 1,000 ids a message from one stream.
func BenchmarkGenerateStream(b *testing.B) {
	overEach(b, func(b *testing.B, over transport) {
		for name, form := range forms {
			for _, namespace := range []string{"users", "wide"} {
				b.Run(namespace+"/"+name, func(b *testing.B) {
					client, _ := start(b, benchConfig, over).dial(b)
					stream, err := client.GenerateStream(b.Context(), &firnv1.GenerateStreamRequest{Namespace: namespace, Form: form})
					if err != nil {
						b.Fatal(err)
					}
					var answer firnv1.GenerateResponse
					for b.Loop() {
						if err := stream.RecvMsg(&answer); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "ids/s")
				})
			}
		}
	})
}
