package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/cli"
)

// TestTheFormulaInJavaScriptDecodesIds runs what firn layout --formula js prints.
func TestTheFormulaInJavaScriptDecodesIds(t *testing.T) {
	random := rand.New(rand.NewPCG(53, 64))
	for _, text := range []string{
		"firn", "discord", "sonyflake", "uid-generator", "mastodon", "js53",
		"36/3/7/11,unit=10ms,epoch=2020-02-29T12:34:56.789Z,order=sequence-worker", "53/0/5/5,epoch=1969-07-20", "63/0/0/0",
	} {
		l, err := firn.ParseLayout(text)
		if err != nil {
			t.Fatal(err)
		}
		_, hi, err := l.Span(l.Epoch(), l.Epoch().AddDate(1000, 0, 0))
		if err != nil {
			t.Fatal(err)
		}
		var script, want bytes.Buffer
		if status := cli.Main([]string{"layout", text, "--formula", "js"}, strings.NewReader(""), &script, &want); status != 0 {
			t.Fatal(want.String())
		}
		script.WriteString("const show = (...all) => console.log(all.join(' '))\n")
		for range 20 {
			id := firn.ID(random.Int64N(int64(hi)))
			p, err := l.Decompose(id)
			if err != nil {
				t.Fatal(err)
			}
			at := l.Time(p.Tick)
			lo, hi, err := l.Span(at, l.Time(p.Tick+1))
			if err != nil {
				t.Fatal(err)
			}
			within := at.Add(time.Duration(random.Int64N(int64(l.Unit())))).UnixMilli() // a Date has no finer time
			fmt.Fprintf(&script, "{ const p = parts(%dn), t = new Date(%d)\n"+
				"  show(p.time.getTime(), p.tick, p.datacenter ?? 0, p.worker ?? 0, p.sequence ?? 0, smallest(t), largest(t)) }\n", id, within)
			fmt.Fprintln(&want, at.UnixMilli(), int64(p.Tick), p.Datacenter, p.Worker, p.Sequence, int64(lo), int64(hi))
		}
		if got := run(t, script.String(), "node", "-"); got != want.String() {
			t.Errorf("%s: %s\nwant\n%s\nby\n%s", text, got, want.String(), script.String())
		}
	}
}
