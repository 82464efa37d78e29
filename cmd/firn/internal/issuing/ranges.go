package issuing

import (
	"context"
	"math"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/segment"
)

// defaultStep is the default number of ids in a range.
const defaultStep = 1000

// maxRange bounds a range; a segment takes no more at once.
const maxRange = 1 << 20

// step returns the size of a range for a client that issues the ids itself, from 1 to 1,048,576. It is the least step
// of a segment: the operator chose it as the size of a range, and a client that ends may lose as many ids.
func (n *Namespace) step() int {
	switch s := n.settings; {
	case s.MinStep > 0:
		return int(min(s.MinStep, maxRange))
	case s.MaxStep > 0:
		return int(min(s.MaxStep, defaultStep))
	}
	return defaultStep
}

// Charge charges the rates for ids that a front end takes from the store itself: the caller's rate and that of the
// namespace with this name, if it is served. The caller must be allowed to use the name. The front end then calls
// done, with the error if it issued none. An error is not counted as a request.
func (f *Front) Charge(caller *access.Caller, name string, ids int64) (done func(err error), err error) {
	count := int(min(ids, math.MaxInt))
	on := rates{caller.Bucket()}
	now := f.service.now.Load()
	ns := now.namespaces[name]
	if ns != nil {
		on[1] = ns.bucket
	} else {
		on[1] = f.service.undeclaredBucket(name, now.limits.RateOf(name))
	}
	if err := on.take(count); err != nil {
		return nil, err
	}
	return func(err error) {
		switch {
		case err != nil:
			on.settle(count, err)
		case ns != nil:
			ns.issued.Add(float64(ids))
		}
	}, nil
}

// undeclaredBucket returns the bucket of a name that is no namespace here; nil without a rate.
func (s *Service) undeclaredBucket(name string, rate access.Rate) *access.Bucket {
	if rate.IsZero() {
		return nil
	}
	made := access.NewSharedBucket("name "+name, rate, s.clock)
	was, loaded := s.undeclared.LoadOrStore(name, made)
	if b, ok := was.(*access.Bucket); ok && b.Rate() == rate {
		return b
	}
	if loaded { // the rate has changed
		s.undeclared.CompareAndSwap(name, was, made)
	}
	return made
}

func (n *Namespace) takeRange(ctx context.Context, want int) (segment.Range, error) {
	from, ok := n.base.(ranged)
	if is := n.Lacks(settings.Range); is != "" || !ok {
		return segment.Range{}, failure.BadRequest("no_ranges",
			"the ids of namespace %s are %s and cannot be handed out as ranges: a plain segment or sequence can; ask for single ids", n.name, is)
	}
	return from.takeRange(ctx, want)
}

// takeRow takes count consecutive ids.
func (n *Namespace) takeRow(ctx context.Context, count int, b *Batch) error {
	row, ok := n.base.(ranged)
	if is := n.Lacks(settings.Row); is != "" || !ok {
		return failure.BadRequest("not_consecutive", "the ids of namespace %s, %s, are not consecutive: take %d with FIRN.NEXT %s COUNT %d",
			n.name, is, count, n.name, count)
	}
	taken, err := row.consecutive(ctx, count)
	if err != nil {
		return err
	}
	b.IDs = append(b.IDs, taken.First, taken.Last())
	return nil
}
