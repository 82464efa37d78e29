package firn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseLayout reads a layout: the name of a preset ("twitter", "ich:9") or
// bits ("41/5/5/12"), either followed by settings that differ from the
// preset's or from the defaults (1ms, 2025-01-01, worker above sequence):
//
//	39/0/16/8,unit=10ms,epoch=2014-09-01,order=sequence-worker
//
// Whatever [Layout.String] prints is read back as the same layout. Errors
// match [ErrSyntax] or [ErrRange].
func ParseLayout(text string) (Layout, error) {
	head, settings, more := strings.Cut(text, ",")
	l, found, err := lookupPreset(head)
	if err != nil {
		return Layout{}, err
	}
	cfg := l.Config()
	if !found {
		if cfg, err = parseBits(head); err != nil {
			return Layout{}, err
		}
	}
	var keys []string
	for more {
		var setting string
		setting, settings, more = strings.Cut(settings, ",")
		key, _, _ := strings.Cut(setting, "=")
		if slices.Contains(keys, key) {
			return Layout{}, NewSyntaxError("layout", text, key+"= stands there twice: write it once")
		}
		keys = append(keys, key)
		if err := parseSetting(&cfg, text, setting); err != nil {
			return Layout{}, err
		}
	}
	return newLayout(cfg)
}

func parseBits(text string) (LayoutConfig, error) {
	cfg := LayoutConfig{Unit: defaultUnit, Epoch: defaultEpoch}
	fields := strings.Split(text, "/")
	if len(fields) != 4 {
		names := make([]string, 0, len(presets))
		for _, p := range presets {
			names = append(names, p.Name)
		}
		return cfg, NewSyntaxError("layout", text,
			"write the bits of time/datacenter/worker/sequence, such as 41/0/10/12, or a preset: "+strings.Join(names, ", "))
	}
	for i, dst := range []*int{&cfg.TimeBits, &cfg.DatacenterBits, &cfg.WorkerBits, &cfg.SequenceBits} {
		n, err := strconv.ParseUint(fields[i], 10, 8)
		if err != nil || fields[i] != strconv.FormatUint(n, 10) {
			return cfg, NewSyntaxError("layout", text,
				fmt.Sprintf("%q is not a number of bits: 0 to %d are allowed, without sign or leading zeros", fields[i], maxBits))
		}
		*dst = int(n)
	}
	return cfg, nil
}

// sequenceFirst is the text of LayoutConfig.SequenceFirst.
const sequenceFirst = "sequence-worker"

func parseSetting(cfg *LayoutConfig, text, setting string) error {
	key, value, _ := strings.Cut(setting, "=")
	var err error
	switch key {
	case "unit":
		cfg.Unit, err = ParseUnit(value)
	case "epoch":
		cfg.Epoch, err = ParseEpoch(value)
	case "order":
		cfg.SequenceFirst = value == sequenceFirst
		if !cfg.SequenceFirst && value != "worker-sequence" {
			err = NewSyntaxError("order", value, "worker-sequence and "+sequenceFirst+" are allowed")
		}
	default:
		err = NewSyntaxError("layout", text, fmt.Sprintf("unknown setting %q: unit=, epoch= and order= are allowed", key))
	}
	return err
}

// ParseUnit reads the length of a tick, such as "1ms", "10ms" or "1s". The least is a
// nanosecond. Errors match [ErrSyntax] or [ErrRange].
func ParseUnit(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || strings.HasPrefix(text, "+") {
		return 0, NewSyntaxError("unit", text, "write a duration, such as 1ms, 10ms or 1s")
	}
	if d < 1 {
		return 0, &RangeError{What: "unit", Value: text, Min: "1ns", Max: "2562047h"}
	}
	return d, nil
}

// ParseEpoch reads the time at which tick 0 begins: RFC 3339
// ("2016-05-20T00:00:00+08:00"), a date in UTC ("2025-01-01") or Unix
// milliseconds ("1288834974657"). Errors match [ErrSyntax], or [ErrRange] for a time
// outside the years 1678 to 2261.
func ParseEpoch(text string) (time.Time, error) {
	t, err := parseEpoch(text)
	if err == nil {
		err = checkEpoch(t)
	}
	if err != nil {
		return time.Time{}, err
	}
	return t, nil
}

// checkEpoch refuses times that Unix nanoseconds cannot hold.
func checkEpoch(epoch time.Time) error {
	if epoch.Before(minEpoch) || epoch.After(maxEpoch) {
		return &RangeError{What: "epoch", Value: stamp(epoch), Min: stamp(minEpoch), Max: stamp(maxEpoch)}
	}
	return nil
}

func parseEpoch(text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t.UTC(), nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	const want = "write RFC 3339 (2025-01-01T00:00:00Z), a date (2025-01-01) or Unix milliseconds (1735689600000)"
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || len(text) == 4 || text[0] == '+' { // meant as a year, not as milliseconds
		return time.Time{}, NewSyntaxError("epoch", text, want)
	}
	return time.UnixMilli(ms).UTC(), nil
}

// Bits returns the bits of time/datacenter/worker/sequence, as in "41/0/10/12".
func (l Layout) Bits() string {
	return fmt.Sprintf("%d/%d/%d/%d", l.Config().TimeBits, l.datacenter, l.worker, l.sequence)
}

// String returns the textual form: the bits, followed by unit, epoch and order
// where they differ from the defaults. [ParseLayout] reads it back.
func (l Layout) String() string {
	var b strings.Builder
	b.WriteString(l.Bits())
	if l.Unit() != defaultUnit {
		b.WriteString(",unit=" + l.Unit().String())
	}
	if !l.Epoch().Equal(defaultEpoch) {
		b.WriteString(",epoch=" + l.Epoch().Format(time.RFC3339Nano))
	}
	if l.sequenceFirst {
		b.WriteString(",order=" + sequenceFirst)
	}
	return b.String()
}

// MarshalText returns [Layout.String]; an error for the zero Layout.
func (l Layout) MarshalText() ([]byte, error) {
	if l == (Layout{}) {
		return nil, NewSyntaxError("layout", "", "the zero Layout has no textual form")
	}
	return []byte(l.String()), nil
}

// UnmarshalText reads what [ParseLayout] does; on an error l is unchanged.
func (l *Layout) UnmarshalText(text []byte) error {
	parsed, err := ParseLayout(string(text))
	if err == nil {
		*l = parsed
	}
	return err
}
