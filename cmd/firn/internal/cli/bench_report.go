package cli

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
)

// report is the result of a benchmark. Durations are those of calls; a call takes batch times pipeline ids.
type report struct {
	Target     string        `json:"target"`
	Callers    int           `json:"callers"`
	Processes  int           `json:"processes"`
	Batch      int           `json:"batch"`
	Pipeline   int           `json:"pipeline,omitempty"`
	Rate       string        `json:"rate,omitempty"`
	Buffered   bool          `json:"buffered,omitempty"`
	Seconds    float64       `json:"seconds"`
	IDs        int64         `json:"ids"`
	PerSecond  float64       `json:"ids_per_second"`
	Nanos      float64       `json:"ns_per_id"`
	Verified   bool          `json:"verified"`
	Duplicates int64         `json:"duplicates"`
	Examples   []firn.ID     `json:"examples,omitempty"`
	Timed      int64         `json:"calls_timed,omitempty"`
	Median     time.Duration `json:"median_ns,omitempty"`
	P99        time.Duration `json:"p99_ns,omitempty"`
	P999       time.Duration `json:"p999_ns,omitempty"`
	Max        time.Duration `json:"max_ns,omitempty"`
	Slow       int64         `json:"calls_over_50ms"`
	Unbegun    int64         `json:"calls_not_begun,omitempty"`
	bars       []bar         // of the durations
}

// finish fills in the results.
func (r *report) finish(set *idset.Set, f found) {
	r.IDs, r.Seconds = f.ids, f.took.Seconds()
	if r.Verified {
		r.IDs, r.Duplicates, r.Examples = set.Added(), set.Duplicates(), set.Examples()
	}
	if r.IDs > 0 {
		r.PerSecond, r.Nanos = float64(r.IDs)/r.Seconds, r.Seconds*1e9/float64(r.IDs)
	}
	r.Timed, r.Slow, r.Unbegun = f.calls.total, f.slow, f.unbegun
	r.bars = f.calls.bars()
	r.Median, r.P99, r.P999, r.Max = f.calls.Quantile(0.5), f.calls.Quantile(0.99), f.calls.Quantile(0.999), f.calls.most
}

func (r report) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ids in %.2f s from %s: %s a second, %s each\n",
		thousands(r.IDs), r.Seconds, r.Target, thousands(int64(r.PerSecond)), eachTook(r.Nanos))
	each := ""
	if r.Processes > 1 {
		each = "each of "
	}
	fmt.Fprintf(&b, "%s in %s%s, %s per call", count(int64(r.Callers), "caller"), each,
		plural(int64(r.Processes), "process", "processes"), count(int64(r.Batch*max(r.Pipeline, 1)), "id"))
	if r.Buffered {
		b.WriteString(", from a buffer")
	}
	if r.Pipeline > 0 {
		fmt.Fprintf(&b, ", %d commands at once", r.Pipeline)
	}
	if r.Rate != "" {
		fmt.Fprintf(&b, ", %s calls due", r.Rate)
	}
	b.WriteByte('\n')
	if r.Timed > 0 {
		fmt.Fprintf(&b, "call latency: median %v, p99 %v, p99.9 %v, max %v (%s timed); %s took longer than %v\n",
			r.Median, r.P99, r.P999, r.Max, thousands(r.Timed), thousands(r.Slow), slowCall)
		r.drawLatency(&b)
	}
	if r.Unbegun > 0 {
		fmt.Fprintf(&b, "%s due but not started when the time was over, timed up to then: use more --callers, or a lower --rate\n",
			plural(r.Unbegun, "call was", "calls were"))
	}
	if r.Verified {
		fmt.Fprintf(&b, "%d duplicates\n", r.Duplicates)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// eachTook writes nanoseconds as 0.4 ns, 885 µs or 1.21 ms.
func eachTook(ns float64) string {
	unit := 0
	for ; ns >= 999.5 && unit < 3; unit++ { // 999.5 is rounded to 1000
		ns /= 1000
	}
	text := strconv.FormatFloat(ns, 'g', 3, 64)
	if ns >= 1000 {
		text = strconv.FormatFloat(ns, 'f', 0, 64)
	}
	return text + " " + [...]string{"ns", "µs", "ms", "s"}[unit]
}

// barWidth is how wide a bar of all calls would be.
const barWidth = 40

// drawLatency draws how many of the timed calls took how long.
func (r report) drawLatency(b *strings.Builder) {
	digits := len(thousands(r.Timed))
	for _, bar := range r.bars {
		share := float64(bar.count) / float64(r.Timed)
		drawn := strings.Repeat("█", int(math.Round(share*barWidth)))
		if drawn == "" && bar.count > 0 {
			drawn = "▏"
		}
		line := fmt.Sprintf("  ≤ %-6v %*s %5.1f %%  %s", bar.atMost, digits, thousands(bar.count), 100*share, drawn)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
