package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Options select the history to play.
type Options struct {
	Seed   uint64
	Regime Regime // default: one after the other by seed
	Steps  int    // events before the faults end; default: 10,000, in a small world 3,000
	Rival  bool   // the usual design in place of Firn
	Lent   bool   // programs with workers that servers lend, in each history that may have them

	// Changes are applied to the plan drawn from the seed, in order: each is the seed of one change.
	Changes []uint64

	// The fields below make a history smaller, to show a failure.
	Machines int          // at most this many
	Without  []string     // these faults do not happen
	Only     []string     // if not empty: all other faults are left out
	Skip     map[int]bool // faults left out by their number

	Trace bool // keep the story
	Count bool // continue after a duplicate, and count duplicates
}

func (o Options) filled() Options {
	if o.Regime == "" {
		o.Regime = Regimes[o.Seed%uint64(len(Regimes))]
	}
	return o
}

// Name is the name of a history: its seed and the changes to it, as 4711.3.12.
func (o Options) Name() string {
	var b strings.Builder
	fmt.Fprint(&b, o.Seed)
	for _, c := range o.Changes {
		fmt.Fprintf(&b, ".%d", c)
	}
	return b.String()
}

// Named returns o with the seed and the changes in a name.
func (o Options) Named(name string) (Options, error) {
	o.Changes = nil
	for i, part := range strings.Split(name, ".") {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return o, fmt.Errorf("history %q: %q is not a number", name, part)
		}
		if i == 0 {
			o.Seed = n
		} else {
			o.Changes = append(o.Changes, n)
		}
	}
	return o, nil
}

// chosen are the faults of a regime from which a history draws its own.
func (o *Options) chosen(faults []kind) []kind {
	if len(o.Only) == 0 {
		return faults
	}
	var list []kind
	for _, k := range faults {
		if slices.Contains(o.Only, k.String()) {
			list = append(list, k)
		}
	}
	return list
}
