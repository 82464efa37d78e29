package cosid

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

// step returns how many ids a client requests at once.
func (h *handler) step(p *params) int64 {
	step := p.integer("step", 64)
	if step < 1 || step > mostStep {
		p.fail(refused("step is %d; 1 to %d are allowed", step, int64(mostStep)))
	}
	return step
}

// A counter is the segment that a request names.
type counter struct {
	Segment
	caller *access.Caller
	name   string
}

func (h *handler) segment(r *http.Request, p *params) (c counter, err error) {
	if c.name, c.caller, err = h.name(r, p, "namespace", "name"); err != nil {
		return c, err
	}
	c.Segment, err = h.cfg.Segment(c.name)
	return c, err
}

// made reports whether the store has a counter.
func (h *handler) made(r *http.Request, name string) func() (bool, error) {
	return func() (bool, error) {
		_, err := segment.ReadCounter(r.Context(), h.cfg.Store, name)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}
}

// admitTo returns an error unless the segment exists, or the client may make it.
func (h *handler) admitTo(r *http.Request, c counter) error {
	if !c.MustExist {
		return h.admit(c.caller, "segment "+c.name, h.made(r, c.name))
	}
	made, err := h.made(r, c.name)()
	if err == nil && !made {
		err = &store.SetBackError{Counter: c.name, Missing: true, Known: firn.ID(h.cfg.Memory.Of(c.name).High())}
	}
	return err
}

// createSegment serves POST /segments/distributor/{namespace}/{name}: it creates a counter
// whose first id is the one after offset, unless the counter exists.
func (h *handler) createSegment(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	offset := p.integer("offset", 64)
	h.step(p)
	if offset < 0 || offset >= int64(firn.MaxID) {
		p.fail(refused("offset is %d; 0 to %d are allowed", offset, int64(firn.MaxID)-1))
	}
	c, err := h.segment(r, p)
	if err != nil {
		return err
	}
	if offset-int64(c.Least) > c.MaxStep {
		if err := h.cfg.Skip(c.caller); err != nil {
			return err
		}
	}
	if err := h.admitTo(r, c); err != nil {
		return err
	}
	if !c.MustExist { // otherwise it is there, and only a person raises it
		if err := h.create(r.Context(), c.name, max(firn.ID(offset), c.Least-1)); err != nil {
			return err
		}
	}
	writeBody(w, http.StatusOK, "", nil)
	return nil
}

// create creates a counter whose ids are greater than last.
func (h *handler) create(ctx context.Context, name string, last firn.ID) error {
	now, err := segment.ReadCounter(ctx, h.cfg.Store, name)
	switch {
	case err == nil: // the write below confirms the counter where it is
		last = firn.ID(min(now.Next, uint64(firn.MaxID))) - 1
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	// If two requests create it at the same time, the greater offset wins.
	_, err = segment.RaiseCounter(ctx, h.cfg.Store, name, last, segment.Stripe{Stride: 1})
	return err
}

// nextMaxID serves PATCH /segments/{namespace}/{name}: it takes step ids and returns the
// greatest. A missing counter is created, and begins with 1.
func (h *handler) nextMaxID(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	step := h.step(p)
	c, err := h.segment(r, p)
	switch {
	case err != nil:
		return err
	case step > c.MaxStep:
		return refused("step is %d; 1 to %d are allowed: the configuration of the server can declare %s with kind: segment and a larger max_step", step, c.MaxStep, c.name)
	}
	if err := h.admitTo(r, c); err != nil {
		return err
	}
	done, err := h.cfg.Take(c.caller, c.name, step)
	if err != nil {
		return err
	}
	from := h.segments
	if c.MustExist {
		from = h.existing
	}
	got, err := from.Fetch(r.Context(), c.name, segment.Ask{Step: step, Above: c.Least - 1})
	if err == nil && got.Count < step {
		// The client computes the first id from the step, and would use ids below the range.
		err = &segment.ExhaustedError{Name: c.name, Next: uint64(got.Last()) + 1, Max: firn.MaxID}
	}
	done(err)
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, "application/json", strconv.AppendInt(nil, int64(got.Last()), 10))
	return nil
}
