package firn_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// published has ids whose parts their systems have published. Layouts of 64 bits have one
// time bit less here: the sign bit, which is 0.
var published = []struct {
	name   string
	id     firn.ID
	layout firn.LayoutConfig
	parts  firn.Parts
	time   string
}{
	{
		"the worked example of 41/5/5/12", 1414362783486840832,
		firn.LayoutConfig{TimeBits: 41, DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12, Epoch: time.UnixMilli(1286726400000)},
		firn.Parts{Tick: 337210365173, Datacenter: 2, Worker: 1}, "2021-06-17T13:32:45.173Z",
	},
	{
		"Twitter, a post of June 2022", 1541815603606036480,
		firn.LayoutConfig{TimeBits: 41, WorkerBits: 10, SequenceBits: 12, Epoch: time.UnixMilli(1288834974657)},
		firn.Parts{Tick: 367597485448, Worker: 378}, "2022-06-28T16:07:40.105Z",
	},
	{
		"Discord, its developer reference", 175928847299117063,
		firn.LayoutConfig{TimeBits: 41, DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12, Epoch: time.UnixMilli(1420070400000)},
		firn.Parts{Tick: 41944705796, Datacenter: 1, Sequence: 7}, "2016-04-30T11:18:25.796Z",
	},
	{
		"Instagram, its engineers' example", 11637205501278089,
		firn.LayoutConfig{TimeBits: 40, WorkerBits: 13, SequenceBits: 10, Epoch: time.UnixMilli(1293840000000)},
		firn.Parts{Tick: 1387263000, Worker: 1341, Sequence: 905}, "2011-01-17T01:21:03Z",
	},
}

func TestIDFieldsAreThePublishedOnes(t *testing.T) {
	for _, c := range published {
		t.Run(c.name, func(t *testing.T) {
			l, err := firn.NewLayout(c.layout)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := l.Decompose(c.id); got != c.parts || err != nil {
				t.Errorf("the parts are %+v, %v, want %+v", got, err, c.parts)
			}
			if got := c.id.Time(l).Format(time.RFC3339Nano); got != c.time {
				t.Errorf("the time is %s, want %s", got, c.time)
			}
		})
	}
}

func TestIDTimeIsZeroIfTheLayoutCannotHaveMadeTheID(t *testing.T) {
	narrow, err := firn.NewLayout(firn.LayoutConfig{TimeBits: 40, WorkerBits: 4, SequenceBits: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		claim  string
		id     firn.ID
		layout firn.Layout
	}{
		{"a negative id", -5, narrow},
		{"an id wider than the layout", narrow.MaxID() + 1, narrow},
		{"the zero layout", 12345, firn.Layout{}},
		{"the zero layout and the id 0", 0, firn.Layout{}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			id, l := c.id, c.layout
			if tm := id.Time(l); !tm.IsZero() {
				t.Errorf("Time is %v, want the zero time", tm)
			}
		})
	}
	if tm := narrow.MaxID().Time(narrow); !tm.Equal(narrow.Time(narrow.MaxTick())) {
		t.Errorf("the widest id is of %v, want %v", tm, narrow.Time(narrow.MaxTick()))
	}
}

func TestIDStringIsTheDecimalNumber(t *testing.T) {
	for _, id := range append(sampleIDs(t), -1, -5, -1<<63) {
		want := strconv.FormatInt(int64(id), 10)
		if id.String() != want {
			t.Fatalf("String is %q, want %s", id.String(), want)
		}
		if got, err := firn.ParseID(want); id >= 0 && (got != id || err != nil) {
			t.Fatalf("ParseID(%q) = %d, %v", want, got, err)
		}
	}
}

func TestParseIDRefusesOtherText(t *testing.T) {
	for _, text := range []string{"", "-1", "+1", "1.0", "1e3", "0x1f", " 1", "1 ", "1_000", "９", "9223372036854775808"} {
		if id, err := firn.ParseID(text); id != 0 || !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("ParseID(%q) = %d, %v, want ErrSyntax", text, id, err)
		}
	}
}
