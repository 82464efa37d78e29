package issuing

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otel "go.opentelemetry.io/otel/trace"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/segment"
)

// An Ask is a request for ids.
type Ask struct {
	Namespace string
	Count     int
	// Fits returns an error for a namespace whose ids cannot be written as the request
	// wants them; nil: all fit.
	Fits func(*Namespace) error
}

// Issue fills b with all ids that the request asks for, or returns an error. If namespaces are created on first use,
// it creates the namespace. It returns the namespace. Ids are numbers or texts, see [Namespace.Numeric]. The caller
// releases b.
func (f *Front) Issue(ctx context.Context, caller *access.Caller, ask Ask, b *Batch) (*Namespace, error) {
	now := f.service.now.Load()
	caller, ns, err := f.find(now, caller, ask, 1)
	if err != nil {
		return nil, err
	}
	if f.service.traced {
		trace(ctx, ns, ask.Count)
	}
	if err := checkCount(ask.Count, now.limits.MaxBatch()); err != nil {
		return nil, f.failed(ns.name, 1, err)
	}
	err = f.issue(caller, ns, ask.Count, func(ns *Namespace) (int, error) {
		var err error
		if ask.Count > smallAnswer {
			err = f.service.room.hold(ctx, caller.Client(), ns, ask.Count, b)
		}
		if err == nil {
			err = ns.take(ctx, ask.Count, b)
		}
		if err != nil {
			return 0, failure.OfDeadline(ctx, err)
		}
		return ask.Count, nil
	})
	if err != nil {
		b.Release()
		return nil, err
	}
	return ns, nil
}

// IssueEach issues one number for each of n requests that came together, in their order, in b.IDs: the same as one after
// the other, at less cost. N is at most the limit of a batch. If only the first ones succeed, the others fail with the error.
func (f *Front) IssueEach(ctx context.Context, caller *access.Caller, namespace string, n int, b *Batch) error {
	b.IDs = b.IDs[:0]
	caller, ns, err := f.find(f.service.now.Load(), caller, Ask{Namespace: namespace, Fits: Numeric}, n)
	if err != nil {
		return err
	}
	for most := ns.atOnce(); len(b.IDs) < n; {
		want := max(1, min(n-len(b.IDs), most, ns.bucket.Left(n), caller.Bucket().Left(n))) // one at least, for the error
		part := Batch{IDs: b.IDs[len(b.IDs):]}
		err := f.charged(caller, ns, want, func(ns *Namespace) (int, error) { return want, ns.take(ctx, want, &part) })
		switch {
		case err == nil:
			b.IDs = append(b.IDs, part.IDs...)
			ns.answered[f.protocol].Add(float64(want))
		case want > 1 && !failure.GaveUp(err): // there may be fewer
			most = want / 2
		default:
			return f.failed(ns.name, n-len(b.IDs), err)
		}
	}
	return nil
}

// Range takes up to [Namespace.Step] ids, at least one, as one range that the caller issues
// itself. It takes fewer at the end of a segment's range in memory. They count as issued.
// Only segments and sequences have ranges, and only without veil and prefix. Ranges of a
// segment increase on one server, those of a sequence across all servers.
func (f *Front) Range(ctx context.Context, caller *access.Caller, namespace string) (r segment.Range, err error) {
	caller, ns, err := f.find(f.service.now.Load(), caller, Ask{Namespace: namespace}, 1)
	if err != nil {
		return r, err
	}
	want := ns.bucket.Most(ns.step())
	if f.service.traced {
		trace(ctx, ns, want)
	}
	err = f.issue(caller, ns, want, func(ns *Namespace) (int, error) {
		var err error
		r, err = ns.takeRange(ctx, want)
		return int(r.Count), err
	})
	return r, err
}

// Numeric refuses a namespace whose ids are texts.
func Numeric(ns *Namespace) error {
	if ns.Numeric() {
		return nil
	}
	return failure.BadRequest("not_a_number",
		"the ids of namespace %s, of kind %s, are texts: take them with FIRN.NEXT %s", ns.name, ns.Kind(), ns.name)
}

// Find returns the namespace of a request if the caller may use it and it fits, without taking ids. If namespaces are
// created on first use, it creates the namespace.
func (f *Front) Find(caller *access.Caller, ask Ask) (*Namespace, error) {
	_, ns, err := f.find(f.service.now.Load(), caller, ask, 1)
	return ns, err
}

// find is Find for several requests that came together. It also returns the caller with its current permissions.
func (f *Front) find(now *snapshot, caller *access.Caller, ask Ask, requests int) (*access.Caller, *Namespace, error) {
	name := ask.Namespace
	if !now.access.Knows(caller) || !caller.May(name) { // rare: revoked or denied, or identified under other settings
		var err error
		if caller, err = f.allow(now, caller, name, requests); err != nil {
			return nil, nil, err
		}
	}
	ns := now.namespaces[name]
	if ns == nil {
		var err error
		if ns, err = f.service.find(name, caller.Client()); err != nil {
			return nil, nil, f.failed("", requests, err)
		}
	}
	if ask.Fits != nil {
		if err := ask.Fits(ns); err != nil {
			return nil, nil, f.failed("", requests, err)
		}
	}
	return caller, ns, nil
}

// trace adds the namespace and the count to the span of a request.
func trace(ctx context.Context, ns *Namespace, count int) {
	otel.SpanFromContext(ctx).SetAttributes(attribute.String("firn.namespace", ns.name), attribute.Int("firn.count", count))
}

func checkCount(count, limit int) error {
	switch {
	case count < 1:
		return failure.BadRequest("bad_count", "count %d is out of range: it is a number from 1 to %d", count, limit)
	case count > limit:
		return failure.New(http.StatusRequestEntityTooLarge, "batch_too_large",
			"count %d is above the limit of %d ids in one answer: ask several times", count, limit)
	}
	return nil
}

// issue is the path of requests for ids: [Front.charged], and it counts the requests, which get the same answer. Count is
// the sum over all of them.
func (f *Front) issue(caller *access.Caller, ns *Namespace, count int, take func(*Namespace) (int, error)) error {
	if err := f.charged(caller, ns, count, take); err != nil {
		return f.failed(ns.name, 1, err)
	}
	ns.answered[f.protocol].Add(1)
	return nil
}

// charged charges the rates of caller and namespace, calls take, and counts the ids. Take takes up to count ids of a
// namespace and returns how many. If a new configuration comes into force meanwhile, it may be called again with the new
// namespace.
func (f *Front) charged(caller *access.Caller, ns *Namespace, count int, take func(*Namespace) (int, error)) error {
	on := rates{caller.Bucket(), ns.bucket}
	if on != (rates{}) {
		if err := on.take(count); err != nil {
			return err
		}
	}
	issued, err := f.service.take(ns, take)
	on.settle(count-issued, err)
	switch {
	case err == nil:
		ns.issued.Add(float64(issued))
		return nil
	case ns.hides(caller):
		return failure.Veiled(err)
	}
	return err
}

// take takes ids of a namespace, or of the one that has replaced it: a new configuration
// may have closed it.
func (s *Service) take(ns *Namespace, take func(*Namespace) (int, error)) (issued int, err error) {
	for {
		issued, err = take(ns)
		switch {
		case err == nil:
			return issued, nil
		case !errors.Is(err, firn.ErrClosed):
			return 0, err
		}
		next := s.now.Load().namespaces[ns.name]
		switch {
		case next == ns:
			return 0, err // the service has ended
		case next == nil:
			return 0, undeclared(ns.name)
		case next.Numeric() != ns.Numeric():
			// The caller expects ids of the other form, and has checked its request for them.
			return 0, failure.New(http.StatusServiceUnavailable, "namespace_changed",
				"namespace %s was changed while the request was under way: ask again", ns.name).After(time.Second)
		}
		ns = next
	}
}

// rates are those of a request's caller and namespace; nil for no limit.
type rates [2]*access.Bucket

// take charges ids to each rate, or to none and returns an error.
func (r rates) take(ids int) error {
	for i, on := range r {
		if err := on.Charge(ids); err != nil {
			for _, charged := range r[:i] {
				charged.Return(ids)
			}
			return err
		}
	}
	return nil
}

// settle returns ids to the rates that were charged but not issued, after an error or fewer ids. They stay charged if the
// request was given up: the store may have counted them. Otherwise callers who give up early would use a counter up past any rate.
func (r rates) settle(ids int, err error) {
	if ids == 0 || failure.GaveUp(err) {
		return
	}
	for _, on := range r {
		on.Return(ids)
	}
}
