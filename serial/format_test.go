package serial_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones below, wherever the tests run

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/serial"
)

func mustLayout(t testing.TB, text string) firn.Layout {
	t.Helper()
	l, err := firn.ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func mustNew(t testing.TB, cfg serial.Config) *serial.Format {
	t.Helper()
	f, err := serial.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustText(t testing.TB, f *serial.Format, id firn.ID) string {
	t.Helper()
	text, err := f.Text(id)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var eight = time.FixedZone("UTC+8", 8*60*60)

// classicID was made at 2021-06-17T13:32:45.173Z in datacenter 2 by worker 1,
// sequence 0: a published worked example.
const classicID = firn.ID(1414362783486840832)

func TestASerialIsTheTimeThenTheFields(t *testing.T) {
	classic := mustLayout(t, "classic")
	for _, c := range []struct {
		claim   string
		cfg     serial.Config
		pattern string
		want    string
	}{
		{"32 digits by default", serial.Config{Layout: classic},
			"yyyyMMddHHmmssSSS0000000ddwwssss", "20210617133245173" + "0000000" + "02" + "01" + "0000"},
		{"the least width", serial.Config{Layout: classic, Width: 25},
			"yyyyMMddHHmmssSSSddwwssss", "20210617133245173" + "02" + "01" + "0000"},
		{"a zone of one offset", serial.Config{Layout: classic, Width: 25, Zone: eight},
			"yyyyMMddHHmmssSSSddwwssss", "20210617213245173" + "02" + "01" + "0000"},
		{"a prefix takes from the fill", serial.Config{Layout: classic, Prefix: "Tx7"},
			"Tx7yyyyMMddHHmmssSSS0000ddwwssss", "Tx7" + "20210617133245173" + "0000" + "02" + "01" + "0000"},
		{"a Luhn digit", serial.Config{Layout: classic, Check: serial.Luhn},
			"yyyyMMddHHmmssSSS000000ddwwssssc", "20210617133245173" + "000000" + "02" + "01" + "0000" + "9"},
		{"two digits of MOD 97-10", serial.Config{Layout: classic, Check: serial.Mod97, Prefix: "P"},
			"PyyyyMMddHHmmssSSS0000ddwwsssscc", "P" + "20210617133245173" + "0000" + "02" + "01" + "0000" + "38"},
	} {
		f := mustNew(t, c.cfg)
		if f.String() != c.pattern {
			t.Errorf("%s: the pattern is %s, want %s", c.claim, f, c.pattern)
		}
		if got := mustText(t, f, classicID); got != c.want {
			t.Errorf("%s: %s, want %s", c.claim, got, c.want)
		}
		if got, err := f.Parse(c.want); got != classicID || err != nil {
			t.Errorf("%s: read as %d, %v", c.claim, got, err)
		}
	}
}

func TestFieldsStandInTheLayoutsOrder(t *testing.T) {
	sonyflake := mustLayout(t, "sonyflake")
	id, err := sonyflake.Compose(firn.Parts{Tick: 38_000_000_007, Worker: 65535, Sequence: 12})
	if err != nil {
		t.Fatal(err)
	}
	f := mustNew(t, serial.Config{Layout: sonyflake, Width: 25})
	if got := mustText(t, f, id); got != sonyflake.Time(38_000_000_007).Format("20060102150405")+"070"+"012"+"65535" {
		t.Errorf("%s in %s", got, f)
	}
}

func TestTicksShorterThanAMillisecondHaveMoreDecimals(t *testing.T) {
	for layout, want := range map[string]string{
		"50/0/4/8,unit=1us":               "yyyyMMddHHmmssSSSfffwwsss",
		"56/0/0/7,unit=100ns":             "yyyyMMddHHmmssSSSffffsss",
		"53/0/4/6,unit=250us":             "yyyyMMddHHmmssSSSffwwss",
		"30/0/16/17,unit=1s":              "yyyyMMddHHmmssSSSwwwwwssssss",
		"62/0/1/0,unit=1ns":               "yyyyMMddHHmmssSSSffffffw",
		"41/0/10/12,unit=1ms":             "yyyyMMddHHmmssSSSwwwwssss",
		"40/0/0/0,order=sequence-worker":  "yyyyMMddHHmmssSSS",
		"39/0/16/8,order=sequence-worker": "yyyyMMddHHmmssSSSssswwwww",
		"39/4/12/8,order=sequence-worker": "yyyyMMddHHmmssSSSsssddwwww",
		"41/0/10/12,unit=1500us":          "yyyyMMddHHmmssSSSfwwwwssss",
		"41/0/10/12,epoch=1420070400000":  "yyyyMMddHHmmssSSSwwwwssss",
	} {
		if f := mustNew(t, serial.Config{Layout: mustLayout(t, layout), Width: len(want)}); f.String() != want {
			t.Errorf("layout %s has the serials %s, want %s", layout, f, want)
		}
	}
}

func TestNewRefusesInvalidSettings(t *testing.T) {
	for _, c := range []struct {
		claim    string
		cfg      serial.Config
		sentinel error
		want     string
	}{
		{"the least width is named", serial.Config{Width: 20}, firn.ErrRange,
			"width 20 is out of range: 25 to 64 are allowed (yyyyMMddHHmmssSSSwwwwssss, layout 41/0/10/12)"},
		{"prefix and check count", serial.Config{Width: 28, Prefix: "AB", Check: serial.Mod97}, firn.ErrRange, "width 28 is out of range: 29 to 64"},
		{"a width below 0", serial.Config{Width: -1}, firn.ErrRange, "width -1"},
		{"a width of more than 64", serial.Config{Width: 65}, firn.ErrRange, "width 65 is out of range: 25 to 64"},
		{"an endless prefix", serial.Config{Prefix: strings.Repeat("A", 5000)}, firn.ErrRange, "length of prefix 5000 is out of range: 0 to 39"},
		{"a prefix with a hyphen", serial.Config{Prefix: "AB-"}, firn.ErrSyntax, "position 3 has another character"},
		{"a prefix with a digit that is not ASCII", serial.Config{Prefix: "٣"}, firn.ErrSyntax, "position 1 has another character"},
		{"an invalid check", serial.Config{Check: 3}, firn.ErrRange, "check 3 is out of range: 0 to 2"},
		{"a zone with summer time", serial.Config{Zone: mustZone(t, "Europe/Berlin")}, firn.ErrSyntax,
			`"Europe/Berlin" is not a valid zone of serials: its offset can change, or differ between machines, which would repeat serials: use UTC or one offset, such as +08:00`},
		{"a zone that has had one offset for 35 years", serial.Config{Zone: mustZone(t, "Asia/Shanghai")}, firn.ErrSyntax, `"Asia/Shanghai" is not a valid`},
		{"the machine's zone", serial.Config{Zone: time.Local}, firn.ErrSyntax, "its offset can change, or differ between machines"},
		{"a day off", serial.Config{Zone: time.FixedZone("far", 24*60*60)}, firn.ErrRange, "offset in seconds 86400 is out of range"},
		{"a day off to the west", serial.Config{Zone: time.FixedZone("far", -24*60*60)}, firn.ErrRange, "offset in seconds -86400"},
		{"every mistake is named", serial.Config{Zone: time.Local, Prefix: "-", Width: 3, Check: 9}, firn.ErrRange, "position 1 has another character"},
	} {
		f, err := serial.New(c.cfg)
		if f != nil || !errors.Is(err, c.sentinel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.claim, err, c.want)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: the error has %d bytes", c.claim, len(err.Error()))
		}
	}
}

// randomFormat returns a format of a random layout.
func randomFormat(t testing.TB, r *rand.Rand) (*serial.Format, firn.Layout) {
	t.Helper()
	for {
		cfg := firn.LayoutConfig{
			TimeBits: 1 + r.IntN(50), DatacenterBits: r.IntN(8), WorkerBits: r.IntN(20), SequenceBits: r.IntN(24),
			Unit:          []time.Duration{1, 7, 100, time.Microsecond, 1500 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, time.Second, time.Hour}[r.IntN(9)],
			Epoch:         time.Unix(r.Int64N(4e9)-2e9, r.Int64N(1e9)),
			SequenceFirst: r.IntN(2) == 1,
		}
		l, err := firn.NewLayout(cfg)
		if err != nil {
			continue
		}
		f, err := serial.New(serial.Config{
			Layout: l, Width: 50 + r.IntN(15), Prefix: []string{"", "P", "20", "Tx9"}[r.IntN(4)],
			Zone: []*time.Location{nil, time.UTC, eight, time.FixedZone("", -12345)}[r.IntN(4)], Check: serial.Check(r.IntN(3)),
		})
		if err != nil {
			t.Fatalf("layout %s: %v", l, err)
		}
		return f, l
	}
}

func TestEveryIDComesBackAndSerialsSortAsIDs(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		f, l := randomFormat(t, r)
		before, beforeID := "", firn.ID(0)
		for i := range 20 {
			id := firn.ID(r.Uint64() & uint64(l.MaxID()))
			switch i {
			case 0:
				id = 0
			case 1:
				id = l.MaxID()
			case 2:
				id = max(beforeID-1, 0)
			}
			text, err := f.Text(id)
			if err != nil {
				if l.Time(partsOf(l, id).Tick).Unix() < 253_370_764_800 { // the year 9999
					t.Fatalf("seed %d: %s of layout %s has no serial: %v", seed, id, l, err)
				}
				continue
			}
			if want := len(f.String()); len(text) != want {
				t.Fatalf("seed %d: %s has %d characters, want %d", seed, text, len(text), want)
			}
			got, err := f.Parse(text)
			if got != id || err != nil {
				t.Fatalf("seed %d: %s of layout %s is written %s and read %d, %v", seed, id, l, text, got, err)
			}
			p, err := f.Parts(text)
			want, _ := l.Decompose(id)
			if p.ID != id || p.Parts != want || !p.Time.Equal(l.Time(want.Tick)) || err != nil {
				t.Fatalf("seed %d: the parts of %s are %+v, %v", seed, text, p, err)
			}
			if before != "" && (text < before) != (id < beforeID) {
				t.Fatalf("seed %d: %s is %s, %s is %s", seed, id, text, beforeID, before)
			}
			before, beforeID = text, id
		}
	}
}

func TestPartsHaveTheTimeInTheZone(t *testing.T) {
	for _, zone := range []*time.Location{time.UTC, eight, mustZone(t, "Etc/GMT-8")} {
		f := mustNew(t, serial.Config{Zone: zone})
		text := mustText(t, f, 1<<40)
		p, err := f.Parts(text)
		if err != nil || p.ID != 1<<40 || p.Time.Location() != zone || !strings.HasPrefix(text, p.Time.Format("20060102150405")) {
			t.Errorf("%s in %v: %+v, %v", text, zone, p, err)
		}
	}
}

func TestTextRefusesIDsOfAnotherLayoutAndFarTimes(t *testing.T) {
	f := mustNew(t, serial.Config{Layout: mustLayout(t, "40/0/0/12"), Prefix: "P"})
	for _, id := range []firn.ID{-1, 1 << 52, firn.MaxID} {
		text, err := f.Text(id)
		if text != "" || !errors.Is(err, firn.ErrRange) {
			t.Errorf("%d is %q, %v, want ErrRange", id, text, err)
		}
	}
	distant := mustLayout(t, "50/0/0/12")
	far := mustNew(t, serial.Config{Layout: distant})
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	lo, _, err := distant.Span(last, last.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if got := mustText(t, far, lo); !strings.HasPrefix(got, "99991231235959000") {
		t.Errorf("the last second is %s", got)
	}
	if text, err := far.Text(lo + 1000<<12); text != "" || !errors.Is(err, firn.ErrRange) || !strings.Contains(err.Error(), "the year 9999") {
		t.Errorf("the year 10000 is %q, %v", text, err)
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	f := mustNew(t, serial.Config{Prefix: "PAY", Check: serial.Mod97, Zone: eight})
	text := mustText(t, f, 1<<60)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = f.Parse(text)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// partsOf returns the parts of an id. It panics if the layout cannot have made it.
func partsOf(l firn.Layout, id firn.ID) firn.Parts {
	p, err := l.Decompose(id)
	if err != nil {
		panic(err)
	}
	return p
}
