package bench

import (
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"

	"github.com/firn-id/firn"
)

// layout parses a layout from a migration guide.
func layout(t *testing.T, text string) firn.Layout {
	t.Helper()
	l, err := firn.ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// made returns ids of a generator that shares the id space with an older system. The generator has
// half of the workers.
func made(t *testing.T, l firn.Layout, datacenter, worker int64) []firn.ID {
	t.Helper()
	g, err := firn.New(worker, firn.Config{Layout: l, Datacenter: datacenter})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]firn.ID, 1000)
	for i := range ids {
		if ids[i], err = g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// Firn and bwmarrin decode each other's ids alike. New ids are above the old ones and have other nodes.
func TestIDsOfBwmarrinGoOn(t *testing.T) {
	node, err := bwmarrin.NewNode(7)
	if err != nil {
		t.Fatal(err)
	}
	twitter := layout(t, "twitter")
	var last firn.ID
	for range 10_000 {
		theirs := node.Generate()
		p, err := twitter.Decompose(firn.ID(theirs.Int64()))
		if err != nil {
			t.Fatal(err)
		}
		if p.Worker != theirs.Node() || p.Sequence != theirs.Step() || twitter.Time(p.Tick).UnixMilli() != theirs.Time() {
			t.Fatalf("%d has node %d, step %d and time %d in bwmarrin, but %+v at %v in Firn", theirs, theirs.Node(), theirs.Step(), theirs.Time(), p, twitter.Time(p.Tick))
		}
		last = firn.ID(theirs.Int64())
	}
	upper := layout(t, "41/1/9/12,epoch=1288834974657")
	for _, id := range made(t, upper, 1, 5) {
		if id <= last {
			t.Fatalf("%d after %d", id, last)
		}
		last = id
		theirs, err := bwmarrin.ParseString(id.String())
		if err != nil {
			t.Fatal(err)
		}
		p, err := upper.Decompose(id)
		if err != nil || theirs.Node() != 512+5 || theirs.Step() != p.Sequence || theirs.Time() != upper.Time(p.Tick).UnixMilli() {
			t.Fatalf("%d is %+v in Firn, %v, but has node %d, step %d and time %d in bwmarrin", id, p, err, theirs.Node(), theirs.Step(), theirs.Time())
		}
	}
}

// Stored texts in these formats need no change.
func TestFormatsOfBwmarrinThatFirnReads(t *testing.T) {
	const id = firn.ID(2124107596064866582)
	theirs := bwmarrin.ParseInt64(int64(id))
	for encoding, text := range map[firn.Encoding]string{
		firn.Decimal: theirs.String(), firn.Base36: theirs.Base36(), firn.Base2: theirs.Base2(),
	} {
		if got, err := encoding.Parse(text); err != nil || got != id {
			t.Errorf("%v: %s is %d, %v", encoding, text, got, err)
		}
	}
	json, err := theirs.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var read firn.ID
	if err := read.UnmarshalJSON(json); err != nil || read != id {
		t.Errorf("JSON %s is %d, %v", json, read, err)
	}
	// bwmarrin has other digits for base 32, 58 and 64, as the guide says.
	if got, err := firn.Base58.Parse(theirs.Base58()); err == nil && got == id {
		t.Error("base 58 is the same: the guide is wrong")
	}
	if got, err := firn.Base32.Parse(theirs.Base32()); err == nil && got == id {
		t.Error("base 32 is the same: the guide is wrong")
	}
	if got, err := firn.Base64.Parse(theirs.Base64()); err == nil && got == id {
		t.Error("base 64 is the same: the guide is wrong")
	}
}

// The test uses the start times of version 1 and version 2.
func TestIDsOfSonyflakeGoOn(t *testing.T) {
	for _, c := range []struct {
		start       time.Time
		whole, part string
	}{
		{time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC), "sonyflake", "39/8/8/8,unit=10ms,epoch=2014-09-01,order=sequence-worker"},
		{time.Time{}, "39/0/16/8,unit=10ms,epoch=2025-01-01,order=sequence-worker", "39/8/8/8,unit=10ms,epoch=2025-01-01,order=sequence-worker"},
	} {
		theirs, err := sonyflake.New(sonyflake.Settings{StartTime: c.start, MachineID: func() (int, error) { return 20<<8 | 30, nil }})
		if err != nil {
			t.Fatal(err)
		}
		whole, part := layout(t, c.whole), layout(t, c.part)
		var last firn.ID
		for range 500 { // the ids of two ticks
			raw, err := theirs.NextID()
			if err != nil {
				t.Fatal(err)
			}
			p, err := whole.Decompose(firn.ID(raw))
			there := theirs.Decompose(raw)
			if err != nil || p.Worker != there["machine"] || p.Sequence != there["sequence"] || int64(p.Tick) != there["time"] ||
				!whole.Time(p.Tick).Equal(theirs.ToTime(raw)) {
				t.Fatalf("%d is %v in Sonyflake and %+v in Firn, %v", raw, there, p, err)
			}
			last = firn.ID(raw)
		}
		for _, id := range made(t, part, 250, 3) {
			if id <= last {
				t.Fatalf("%d after %d", id, last)
			}
			last = id
			if there := theirs.Decompose(int64(id)); there["machine"] != 250<<8|3 {
				t.Fatalf("%d is %v in Sonyflake", id, there)
			}
		}
	}
}
