package firn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Preset is a layout in common use, with its name.
type Preset struct {
	Name   string
	Layout Layout
	Remark string
}

// DefaultLayout returns the preset "firn": 41/0/10/12 with ticks of one millisecond from
// 2025-01-01. It has 1,024 workers and lasts until 2094.
func DefaultLayout() Layout { return preset(41, 0, 10, 12, defaultUnit, defaultEpoch) }

func preset(timeBits, datacenter, worker, sequence uint8, unit time.Duration, epoch time.Time) Layout {
	return Layout{
		time: timeBits, datacenter: datacenter, worker: worker, sequence: sequence,
		unit: int64(unit), epoch: epoch.UnixNano(),
	}
}

// Presets returns all presets. The worker bits of the preset "ich" can be chosen: "ich:9"
// gives 9 bits to the worker and the other 13 of 22 to the sequence. ICH.Snowflake had another
// formula until 2021-11-25: "ich:12" reads its ids of 10 worker bits, "ich:13" those of 9.
func Presets() []Preset { return slices.Clone(presets) }

var presets = func() []Preset {
	date := func(year, month, day int) time.Time {
		return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	}
	sonyflake := preset(39, 0, 16, 8, 10*time.Millisecond, date(2014, 9, 1))
	sonyflake.sequenceFirst = true
	discord := preset(41, 5, 5, 12, time.Millisecond, time.UnixMilli(1420070400000))
	discord.unsigned = true
	instagram := preset(40, 0, 13, 10, time.Millisecond, time.UnixMilli(1314220021721))
	instagram.unsigned = true
	twitter := preset(41, 0, 10, 12, time.Millisecond, time.UnixMilli(1288834974657))
	return []Preset{
		{"firn", DefaultLayout(), "the default: 1,024 workers"},
		{"classic", preset(41, 5, 5, 12, time.Millisecond, time.UnixMilli(1286726400000)), "separate datacenter and worker, twepoch 1286726400000"},
		{"idworker", preset(41, 5, 5, 12, time.Millisecond, time.UnixMilli(1420041600000)), "SnowflakeIdWorker.java, twepoch 1420041600000"},
		{"twitter", twitter, "Twitter, X, bwmarrin with its epoch"},
		{"leaf", twitter, "Meituan Leaf"},
		{"discord", discord, "datacenter = worker, worker = process"},
		{"instagram", instagram, "worker = shard"},
		{"sonyflake", sonyflake, "sequence above worker"},
		{"mastodon", preset(47, 0, 0, 16, time.Millisecond, time.UnixMilli(0)), "time and sequence only"},
		{"uid-generator", preset(28, 0, 22, 13, time.Second, date(2016, 5, 20).Add(-8*time.Hour)), "Baidu's defaults"},
		{"ich", ichLayout(10), "ich:9 has 9 worker bits; ich:12 reads ids of the old formula"},
		{"js53", preset(41, 0, 5, 7, time.Millisecond, defaultEpoch), "below 2^53: exact as a JavaScript number"},
	}
}()

// ichBits is the sum of the worker and sequence bits of the preset ich.
const ichBits = 22

func ichLayout(worker uint8) Layout {
	return preset(41, 0, worker, ichBits-worker, time.Millisecond, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
}

// lookupPreset returns the preset with a name; found is false if there is no such preset.
func lookupPreset(name string) (l Layout, found bool, err error) {
	if bits, ok := strings.CutPrefix(name, "ich:"); ok {
		n, err := strconv.ParseUint(bits, 10, 8)
		if err != nil || n > ichBits {
			return Layout{}, true, NewSyntaxError("layout", name, fmt.Sprintf("ich has 0 to %d worker bits", ichBits))
		}
		return ichLayout(uint8(n)), true, nil
	}
	for _, p := range presets {
		if p.Name == name {
			return p.Layout, true, nil
		}
	}
	return Layout{}, false, nil
}

// Name returns the name of the first preset equal to l, or "".
func (l Layout) Name() string {
	for _, p := range presets {
		if p.Layout == l {
			return p.Name
		}
	}
	if l.worker <= ichBits && l == ichLayout(l.worker) {
		return fmt.Sprintf("ich:%d", l.worker)
	}
	return ""
}
