package segment

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// A record is what the store keeps for a name, under [register.CounterKey], as small readable JSON. Other
// processes read only the use, next, offset and stride. Writer and write together make equal bytes the
// same write; its writer reads step.
type record struct {
	register.Use
	Next   string    `json:"next"` // the next range begins here; a string, since some tools lose integers above 2^53
	Offset int64     `json:"offset"`
	Stride int64     `json:"stride"`
	Step   int64     `json:"step"` // how many ids the write took, negative for those it gave back
	Writer string    `json:"writer"`
	Write  uint64    `json:"write"`
	Host   string    `json:"host,omitempty"`
	PID    int       `json:"pid,omitempty"`
	At     time.Time `json:"at"` // the writer's clock
}

const (
	kind = "segment"
	// maxNext bounds the next id, which may lie above the last: by a stride.
	maxNext = uint64(math.MaxInt64) + maxStride
)

// A counter is the content of a record.
type counter struct {
	Counter
	step int64
	use  *register.Use // of this record, and of the next write
}

// last is the last id used, or 0.
func (c counter) last() firn.ID {
	return firn.ID(c.Next - min(c.Next, uint64(max(c.Stripe.Stride, 1))))
}

// readCounter reads the record of name for a use. Errors: [store.ErrForeign], *[store.TakenError].
func readCounter(name string, e store.Entry, use *register.Use) (counter, error) {
	foreign := func(why error) (counter, error) {
		return counter{}, register.Foreign(e.Key, "name", why)
	}
	var r record
	err := json.Unmarshal(e.Value, &r)
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		return foreign(err)
	}
	use, err = use.Over(name, r.Use)
	if err != nil {
		return counter{}, err
	}
	c := counter{Counter: Counter{Stripe: Stripe{Offset: r.Offset, Stride: r.Stride}}, step: r.Step, use: use}
	if err := c.Stripe.check(); err != nil {
		return foreign(err)
	}
	next, err := strconv.ParseUint(r.Next, 10, 64)
	switch {
	case err != nil:
		return foreign(firn.NewSyntaxError("next id", r.Next, "it is a decimal number in quotes"))
	case next > maxNext:
		return foreign(&firn.RangeError{What: "next id", Value: r.Next, Min: "0", Max: strconv.FormatUint(maxNext, 10)})
	case next%uint64(r.Stride) != uint64(r.Offset):
		return foreign(firn.NewSyntaxError("next id", r.Next, "it is not of "+c.Stripe.String()))
	}
	c.Next = next
	return c, nil
}

// check returns an error for an invalid stripe.
func (s Stripe) check() error {
	return cmp.Or(
		config.In("Stride", config.Check("stride", s.Stride, 1, maxStride, "")),
		config.In("Offset", config.Check("offset", s.Offset, 0, s.Stride-1, "below the stride")))
}

// from returns the least id of the stripe that is not below least, at most 2^63.
func (s Stripe) from(least uint64) uint64 {
	stride := uint64(s.Stride)
	return least + (uint64(s.Offset)+stride-least%stride)%stride
}
