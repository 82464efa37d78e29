package sim

import "math/rand/v2"

// A Corpus chooses the next history to play. Half of them are new seeds, in order; the others are
// changes of histories that reached a new situation.
type Corpus struct {
	next   uint64
	random *rand.Rand
	seen   map[uint32]struct{}
	kept   []Options
}

// maxKept bounds how many histories are remembered, maxChanges how often one is changed.
const (
	maxKept    = 512
	maxChanges = 12
)

// NewCorpus returns a corpus whose first history has the seed from.
func NewCorpus(from uint64) *Corpus {
	return &Corpus{next: from, random: stream(from, streamCorpus), seen: map[uint32]struct{}{}}
}

// Next returns o with the seed and the changes of the next history.
func (c *Corpus) Next(o Options) Options {
	if len(c.kept) == 0 || c.random.IntN(2) == 0 {
		o.Seed, o.Changes = c.next, nil
		c.next++
		return o
	}
	// Later ones reached the rarest situations
	i := max(c.random.IntN(len(c.kept)), c.random.IntN(len(c.kept)))
	from := c.kept[i]
	o.Seed, o.Regime = from.Seed, from.Regime
	o.Changes = append(from.Changes[:len(from.Changes):len(from.Changes)], c.random.Uint64()%1_000_000)
	return o
}

// Learn keeps a history that reached new situations.
func (c *Corpus) Learn(o Options, r *Result) {
	fresh := 0
	for _, f := range r.Cover {
		if _, ok := c.seen[f]; !ok {
			c.seen[f] = struct{}{}
			fresh++
		}
	}
	if fresh == 0 || len(o.Changes) >= maxChanges {
		return
	}
	o.Regime = r.Regime
	if len(c.kept) >= maxKept {
		c.kept = c.kept[1:]
	}
	c.kept = append(c.kept, o)
}
