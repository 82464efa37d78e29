package firn_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

func TestPublishedIDsDecodeToTheirPublishedPartsAndBack(t *testing.T) {
	text, err := os.ReadFile("testdata/ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Snowflake []struct {
			Name        string    `json:"name"`
			Layout      string    `json:"layout"`
			EpochUnixMS int64     `json:"epoch_unix_ms"`
			UnitMS      int64     `json:"unit_ms"`
			ID          firn.ID   `json:"id"`
			Tick        firn.Tick `json:"tick,string"`
			Time        time.Time `json:"time"`
			Datacenter  int64     `json:"datacenter"`
			Worker      int64     `json:"worker"`
			Sequence    int64     `json:"sequence"`
		} `json:"snowflake"`
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Snowflake) < 4 {
		t.Fatalf("%d vectors", len(vectors.Snowflake))
	}
	for _, v := range vectors.Snowflake {
		l := mustLayout(v.Layout)
		if l, err = withEpoch(l, time.UnixMilli(v.EpochUnixMS)); err != nil {
			t.Fatal(err)
		}
		cfg := l.Config()
		cfg.Unit = time.Duration(v.UnitMS) * time.Millisecond
		if l, err = firn.NewLayout(cfg); err != nil {
			t.Fatal(err)
		}
		want := firn.Parts{Tick: v.Tick, Datacenter: v.Datacenter, Worker: v.Worker, Sequence: v.Sequence}
		got, err := l.Decompose(v.ID)
		if err != nil || got != want || !v.ID.Time(l).Equal(v.Time) {
			t.Errorf("%s: %+v at %v, %v; want %+v at %v", v.Name, got, v.ID.Time(l), err, want, v.Time)
		}
		if id, err := l.Compose(got); err != nil || id != v.ID {
			t.Errorf("%s: composed again it is %d, %v, want %d", v.Name, id, err, v.ID)
		}
		if partsOf(l, v.ID).Tick != v.Tick || partsOf(l, v.ID).Worker != v.Worker || partsOf(l, v.ID).Datacenter != v.Datacenter || partsOf(l, v.ID).Sequence != v.Sequence {
			t.Errorf("%s: the id's own methods return something else", v.Name)
		}
	}
}

func TestEverySplitComposesAndDecomposes(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for range 20_000 {
		total := 1 + random.IntN(63)
		time := 1 + random.IntN(total)
		dc := random.IntN(total - time + 1)
		worker := random.IntN(total - time - dc + 1)
		cfg := firn.LayoutConfig{
			TimeBits: time, DatacenterBits: dc, WorkerBits: worker, SequenceBits: total - time - dc - worker,
			SequenceFirst: random.IntN(2) == 1,
		}
		l, err := firn.NewLayout(cfg)
		if err != nil {
			t.Fatal(err)
		}
		id := firn.ID(random.Int64()) & l.MaxID()
		p, err := l.Decompose(id)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := l.Compose(p); err != nil || back != id {
			t.Fatalf("%s: %d gave %+v, which gave %d, %v", l, id, p, back, err)
		}
		if parsed, err := firn.ParseLayout(l.String()); err != nil || parsed != l {
			t.Fatalf("%q was read as %v, %v", l, parsed, err)
		}
	}
}

func TestPresetsAreTheLayoutsOfTheirSystems(t *testing.T) {
	want := map[string]string{
		"firn": "41/0/10/12 1ms 1735689600000", "classic": "41/5/5/12 1ms 1286726400000",
		"twitter": "41/0/10/12 1ms 1288834974657", "leaf": "41/0/10/12 1ms 1288834974657",
		"discord": "42/5/5/12 1ms 1420070400000", "instagram": "41/0/13/10 1ms 1314220021721",
		"sonyflake": "39/0/16/8 10ms 1409529600000", "mastodon": "47/0/0/16 1ms 0",
		"uid-generator": "28/0/22/13 1s 1463673600000", "ich": "41/0/10/12 1ms 1577836800000",
		"js53": "41/0/5/7 1ms 1735689600000", "idworker": "41/5/5/12 1ms 1420041600000",
	}
	if len(firn.Presets()) != len(want) {
		t.Errorf("%d presets", len(firn.Presets()))
	}
	for _, p := range firn.Presets() {
		l := p.Layout
		got := l.Bits() + " " + l.Unit().String() + " " + strconv.FormatInt(l.Epoch().UnixMilli(), 10)
		if got != want[p.Name] {
			t.Errorf("%s: %s, want %s", p.Name, got, want[p.Name])
		}
		if parsed := mustLayout(p.Name); parsed != l {
			t.Errorf("%s is read as %v", p.Name, parsed)
		}
		if back := mustLayout(l.String()); back != l {
			t.Errorf("%s is printed as %v", p.Name, l)
		}
	}
	if !mustLayout("sonyflake").Config().SequenceFirst {
		t.Error("sonyflake's sequence is not above the worker")
	}
	if l := mustLayout("ich:9"); l.Bits() != "41/0/9/13" || l.Name() != "ich:9" {
		t.Errorf("ich:9 is %s, named %q", l.Bits(), l.Name())
	}
	if got := mustLayout("js53").MaxID(); got >= 1<<53 {
		t.Errorf("js53 reaches %d", got)
	}
	if got := mustLayout("uid-generator").End().Format(time.DateOnly); got != "2024-11-20" {
		t.Errorf("uid-generator ends on %s", got)
	}
}

func TestImpossibleLayoutsAreRefusedWithTheLimit(t *testing.T) {
	for text, want := range map[string]string{
		"41/6/6/12":                   "65",
		"0/0/10/12":                   "time bits 0",
		"64/0/0/0":                    "time bits 64",
		"41/0/10":                     "preset",
		"41/0/10/12/1":                "preset",
		"41/-1/10/12":                 "-1",
		"041/0/10/12":                 "041",
		"a/b/c/d":                     "number of bits",
		"":                            "preset",
		"41/0/10/12,unit=0":           "1ns",
		"41/0/10/12,unit=0s":          "1ns",
		"41/0/10/12,unit=-1ms":        "1ns",
		"41/0/10/12,unit=ms":          "duration",
		"41/0/10/12,epoch=2025":       "2025-01-01",
		"41/0/10/12,epoch=yesterday":  "RFC 3339",
		"41/0/10/12,epoch=1600-01-01": "1678",
		"41/0/10/12,order=up":         "sequence-worker",
		"41/0/10/12,speed=9":          "unit=",
		"ich:23":                      "22",
		"ich:x":                       "22",
		"nosuch":                      "twitter",
	} {
		l, err := firn.ParseLayout(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", text, l, err, want)
		} else if !errors.Is(err, firn.ErrSyntax) && !errors.Is(err, firn.ErrRange) {
			t.Errorf("%q: %v matches no sentinel", text, err)
		}
	}
	_, err := firn.NewLayout(firn.LayoutConfig{TimeBits: 70, SequenceBits: -1, Unit: -1})
	for _, part := range []string{"time bits 70", "sequence bits -1", "unit -1ns"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v lacks %q", err, part)
		}
	}
}

func TestPartsThatDoNotFitAreRefused(t *testing.T) {
	l := firn.DefaultLayout()
	_, err := l.Compose(firn.Parts{Tick: -1, Datacenter: 1, Worker: 1024, Sequence: 4096})
	for _, part := range []string{"tick -1", "datacenter 1", "worker 1024 is out of range: 0 to 1023", "sequence 4096"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v lacks %q", err, part)
		}
	}
	for _, id := range []firn.ID{-1, -1 << 63} {
		if _, err := l.Decompose(id); !errors.Is(err, firn.ErrRange) {
			t.Errorf("decompose %d: %v", id, err)
		}
	}
	if _, err := mustLayout("js53").Decompose(1 << 53); !errors.Is(err, firn.ErrRange) {
		t.Errorf("an id wider than its layout: %v", err)
	}
}

func TestTicksAndTimesAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	for _, text := range []string{
		"firn", "sonyflake", "uid-generator", "mastodon", "63/0/0/0,unit=1ns,epoch=1678-01-01",
		"41/0/0/22,unit=7ms,epoch=1999-12-31T23:59:59.999999999Z", "30/0/0/0,unit=1h", "50/0/0/0,unit=333ns,epoch=1900-01-01",
	} {
		l := mustLayout(text)
		for range 2000 {
			tick := firn.Tick(random.Int64()) & l.MaxTick()
			begin := l.Time(tick)
			for offset, want := range map[time.Duration]firn.Tick{0: tick, l.Unit() - 1: tick, l.Unit(): tick + 1} {
				got, err := l.Tick(begin.Add(offset))
				if want > l.MaxTick() {
					if !errors.Is(err, firn.ErrTimeExhausted) {
						t.Fatalf("%s: past the end: %v", text, err)
					}
				} else if err != nil || got != want {
					t.Fatalf("%s: tick %d begins %v; %v later it is %d, %v", text, tick, begin, offset, got, err)
				}
			}
		}
		if _, err := l.Tick(l.Epoch().Add(-1)); !errors.Is(err, firn.ErrRange) {
			t.Errorf("%s: before the epoch: %v", text, err)
		}
		if !l.Time(l.MaxTick()).Add(l.Unit()).Equal(l.End()) {
			t.Errorf("%s: first %v, last %v, end %v", text, l.Epoch(), l.Time(l.MaxTick()), l.End())
		}
	}
	if last := mustLayout("63/0/0/0,unit=1h").End(); last.Year() < 100_000_000 {
		t.Errorf("the longest layout ends in %d", last.Year())
	}
}

func TestASpanHoldsExactlyTheIDsOfItsTime(t *testing.T) {
	l := mustLayout("41/2/3/4")
	begin := l.Epoch().Add(time.Hour)
	lo, hi, err := l.Span(begin, begin.Add(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	for ms := -5; ms < 20; ms++ {
		tick, err := l.Tick(begin.Add(time.Duration(ms) * time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		first, err := l.Compose(firn.Parts{Tick: tick})
		if err != nil {
			t.Fatal(err)
		}
		last, err := l.Compose(firn.Parts{Tick: tick, Datacenter: 3, Worker: 7, Sequence: 15})
		if err != nil {
			t.Fatal(err)
		}
		inside := ms >= 0 && ms < 10
		if (first >= lo && last <= hi) != inside || !inside && first <= hi && last >= lo {
			t.Errorf("%dms: ids %d to %d, the span is %d to %d", ms, first, last, lo, hi)
		}
	}
	if lo, hi, err := l.Span(time.Time{}, l.End().Add(time.Hour)); err != nil || lo != 0 || hi != l.MaxID() {
		t.Errorf("a span over everything: %d to %d, %v", lo, hi, err)
	}
	for _, span := range [][2]time.Time{
		{begin, begin}, {begin.Add(time.Hour), begin}, {begin.Add(1), begin.Add(2)},
		{l.Epoch().Add(-2), l.Epoch().Add(-1)}, {l.End(), l.End().Add(time.Hour)}, {l.Epoch().Add(-1), l.Epoch()},
	} {
		if lo, hi, err := l.Span(span[0], span[1]); !errors.Is(err, firn.ErrRange) {
			t.Errorf("span %v: %d to %d, %v", span, lo, hi, err)
		}
	}
}

// The tick after the last of 63 time bits would be negative.
func TestASpanPastTheEndOfA63BitLayoutIsEmpty(t *testing.T) {
	for _, text := range []string{"63/0/0/0,unit=1ns", "63/0/0/0,unit=1us"} {
		l := mustLayout(text)
		last := l.Time(l.MaxTick())
		for _, from := range []time.Time{l.End(), l.End().Add(time.Hour)} {
			if lo, hi, err := l.Span(from, from.Add(time.Hour)); !errors.Is(err, firn.ErrRange) {
				t.Errorf("%s, from %v: %d to %d, %v", text, from, lo, hi, err)
			}
		}
		if lo, hi, err := l.Span(last, l.End().Add(time.Hour)); err != nil || lo != hi || hi != l.MaxID() {
			t.Errorf("%s, the last tick: %d to %d, %v", text, lo, hi, err)
		}
	}
	l := mustLayout("63/0/0/0,unit=1us")
	if lo, hi, err := l.Span(l.Time(l.MaxTick()).Add(1), l.End().Add(time.Hour)); !errors.Is(err, firn.ErrRange) {
		t.Errorf("from within the last tick: %d to %d, %v", lo, hi, err)
	}
}

func TestTheReadableFormSortsAndParsesBack(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, text := range []string{"firn", "classic", "sonyflake", "uid-generator", "instagram", "41/0/0/22,unit=7ms,epoch=2001-02-03T04:05:06.000000007Z"} {
		l := mustLayout(text)
		for range 2000 {
			a, b := firn.ID(random.Int64())&l.MaxID(), firn.ID(random.Int64())&l.MaxID()
			if random.IntN(2) == 0 { // near each other
				b = min(a+firn.ID(random.IntN(1<<20)), l.MaxID())
			}
			ra, err := l.Readable(a)
			if err != nil {
				t.Fatal(err)
			}
			rb, err := l.Readable(b)
			if err != nil {
				t.Fatal(err)
			}
			if (a < b) != (ra < rb) {
				t.Fatalf("%s: %d %s and %d %s sort differently", text, a, ra, b, rb)
			}
			if back, err := l.ParseReadable(ra); err != nil || back != a {
				t.Fatalf("%s: %s was read as %d, %v, want %d", text, ra, back, err, a)
			}
		}
	}
	l := firn.DefaultLayout()
	id, err := l.ParseReadable("20261120-221503.123-w17-s42")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.Readable(id); err != nil || got != "20261120-221503.123-w0017-s0042" {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []string{
		"", "x", "20261120", "20261120-221503.123", "20261120-221503.123-w17", "20261120-221503.123-s42-w17",
		"20261120-221503.123-w1024-s0", "20261120-221503.123-w17-s42-x1", "20261120-221503.1235-w17-s42",
		"20261320-221503.123-w17-s42", "20001120-221503.123-w17-s42", "20261120-221503.123-w-1-s42", "22001120-221503.123-w1-s42",
	} {
		if id, err := l.ParseReadable(bad); err == nil {
			t.Errorf("%q was read as %d", bad, id)
		}
	}
}

func FuzzParseLayout(f *testing.F) {
	for _, text := range []string{"41/5/5/12", "twitter,epoch=0", "ich:9", "39/0/16/8,unit=10ms,epoch=2014-09-01,order=sequence-worker", "63/0/0/0,unit=2562047h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := firn.ParseLayout(text)
		if err != nil {
			return
		}
		if back, err := firn.ParseLayout(l.String()); err != nil || back != l {
			t.Fatalf("%q is printed as %q, which is read as %v, %v", text, l, back, err)
		}
		_ = l.Time(l.MaxTick()).String() + l.End().String()
	})
}

func FuzzParseReadable(f *testing.F) {
	f.Add("20261120-221503.123-w17-s42", "firn")
	f.Add("20261120-221503.12-s42-w17", "sonyflake")
	f.Fuzz(func(t *testing.T, text, layout string) {
		l, err := firn.ParseLayout(layout)
		if err != nil {
			return
		}
		id, err := l.ParseReadable(text)
		if err != nil {
			return
		}
		again, err := l.Readable(id)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := l.ParseReadable(again); err != nil || back != id {
			t.Fatalf("%q is id %d, printed as %q, which is read as %d, %v", text, id, again, back, err)
		}
	})
}

func withEpoch(l firn.Layout, epoch time.Time) (firn.Layout, error) {
	cfg := l.Config()
	cfg.Epoch = epoch
	return firn.NewLayout(cfg)
}
