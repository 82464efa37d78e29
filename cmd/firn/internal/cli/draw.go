package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
)

// a field is a run of bits with a name, as the drawing shows it.
type field struct {
	name, short string
	width       int
	value       string
	greatest    int64
}

// fieldColours are the colours of the fields of ids, by their names.
var fieldColours = map[string]colour{"time": cyan, "datacenter": magenta, "worker": yellow, "sequence": green}

// fields returns the fields of a layout from high to low.
func fields(l firn.Layout, r decode.Result) []field {
	machine := []field{
		{"datacenter", "dc", l.Config().DatacenterBits, fmt.Sprint(r.Datacenter), l.MaxDatacenter()},
		{"worker", "wkr", l.Config().WorkerBits, fmt.Sprint(r.Worker), l.MaxWorker()},
	}
	sequence := field{"sequence", "seq", l.Config().SequenceBits, fmt.Sprint(r.Sequence), l.MaxSequence()}
	all := []field{{"time", "t", l.Config().TimeBits, "", 0}}
	if l.Config().SequenceFirst {
		all = append(append(all, sequence), machine...)
	} else {
		all = append(append(all, machine...), sequence)
	}
	return slices.DeleteFunc(all, func(f field) bool { return f.width == 0 })
}

// draw writes the bits of an id, field by field, and the fields' names under
// them:
//
//	0 00010011101000001010100111001101110110101 00010 00001 000000000000
//	+ └───────────────── time ────────────────┘ └dc─┘ └wkr┘ └─sequence─┘
func draw(l firn.Layout, r decode.Result, p palette) string {
	all := fields(l, r)
	used := 0
	for _, f := range all {
		used += f.width
	}
	text := fmt.Sprintf("%064b", uint64(r.ID))
	var bits, names []string
	if used < 64 { // otherwise the time field uses the sign bit
		bits, names = []string{p.paint(faint, text[:1])}, []string{p.paint(faint, "+")}
	}
	if spare := 63 - used; spare > 0 {
		bits, names = append(bits, p.paint(faint, text[1:1+spare])), append(names, p.paint(faint, bracket(spare, "unused", "–")))
	}
	at := 64 - used
	for _, f := range all {
		c := fieldColours[f.name]
		bits = append(bits, p.paint(c, text[at:at+f.width]))
		names = append(names, p.paint(c, bracket(f.width, f.name, f.short)))
		at += f.width
	}
	return strings.Join(bits, " ") + "\n" + strings.TrimRight(strings.Join(names, " "), " ") + "\n"
}

// bracket draws a brace of a width, with the name in it, or the short name, or no name, whatever fits.
func bracket(width int, name, short string) string {
	if width == 1 {
		return "╵"
	}
	inner := width - 2
	for _, label := range []string{" " + name + " ", name, short, ""} {
		if n := len([]rune(label)); n <= inner {
			left := (inner - n) / 2
			return "└" + strings.Repeat("─", left) + label + strings.Repeat("─", inner-n-left) + "┘"
		}
	}
	return "└┘"
}
