package client_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

// instant answers any request for ids at once, with texts made before, so that only the
// client is measured.
type instant struct{ body []byte }

func newInstant(most int) instant {
	var b []byte
	for i := range most {
		b = strconv.AppendInt(b, 1<<60+int64(i), 10)
		b = append(b, '\n')
	}
	return instant{b}
}

func (i instant) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain"}, "Firn-Once": {r.URL.Query().Get("once")}}, Request: r}
	if strings.HasPrefix(r.URL.Path, "/v1/namespaces/") {
		answer.Header.Set("Content-Type", "application/json")
		answer.Body = io.NopCloser(strings.NewReader(`{"kind":"snowflake","veil":"yes"}`))
		return answer, nil
	}
	count, err := strconv.Atoi(r.URL.Query().Get("count"))
	answer.Body = io.NopCloser(bytes.NewReader(i.body[:20*count]))
	return answer, err
}

func benchmarked(b testing.TB, buffer client.Buffer) (*client.Client, *client.Namespace[firn.ID]) {
	b.Helper()
	c := newClient(b, client.Config{
		Servers: []string{"http://a"}, HTTP: &http.Client{Transport: newInstant(100_000)}, Buffer: buffer,
	})
	n := ids(b, c, "orders")
	if _, err := n.Next(context.Background()); err != nil {
		b.Fatal(err)
	}
	return c, n
}

// warm fills the buffer while the benchmark's clock is stopped.
func warm(b *testing.B, c *client.Client, n *client.Namespace[firn.ID], size int) {
	b.StopTimer()
	defer b.StartTimer()
	below := stateOf(c, "orders").Buffered - size*3/4 // the mark at which it is filled
	if _, err := n.Fill(context.Background(), make([]firn.ID, max(below, 1))); err != nil {
		b.Fatal(err)
	}
	for stateOf(c, "orders").Buffered < size {
		time.Sleep(time.Millisecond)
	}
}

// BenchmarkNext measures an id from a buffer that is not being filled.
func BenchmarkNext(b *testing.B) {
	const size = 1 << 20
	for name, age := range map[string]time.Duration{"warm": 0, "warm, with MaxAge": time.Hour} {
		b.Run(name, func(b *testing.B) {
			c, n := benchmarked(b, client.Buffer{Min: size, Max: size, MaxAge: age})
			ctx := context.Background()
			b.ReportAllocs()
			left := 0
			for b.Loop() {
				if left == 0 {
					warm(b, c, n, size)
					left = size/4 - 1 // above that mark
				}
				left--
				if _, err := n.Next(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStream measures callers that take ids as fast as they can, with the requests
// and the reading of answers.
func BenchmarkStream(b *testing.B) {
	_, n := benchmarked(b, client.Buffer{Max: 1 << 20})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := n.Next(context.Background()); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func TestNextFromTheBufferAllocatesNothing(t *testing.T) {
	_, n := benchmarked(t, client.Buffer{Min: 100_000})
	ctx := context.Background()
	if allocs := testing.AllocsPerRun(10_000, func() {
		if _, err := n.Next(ctx); err != nil {
			t.Error(err)
		}
	}); allocs != 0 {
		t.Errorf("%v allocations per id", allocs)
	}
}
