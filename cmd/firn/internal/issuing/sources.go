package issuing

import (
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/veil"
)

// A base is where the ids of a namespace come from. Bases are compared by identity.
type base interface {
	// state adds the base's state.
	state(*State)
	// able returns nil if the base, as far as it knows, can issue, or else the reason. It
	// does not wait: if the store failed, it probes it in the background.
	able() error
	// close ends the base; it issues no id after close returns.
	close(ctx context.Context) error
}

// numbers makes ids that are numbers.
type numbers interface {
	// fill fills ids, or returns an error.
	fill(ctx context.Context, ids []firn.ID) error
}

// texts makes ids that are texts.
type texts interface {
	// take returns n ids or an error.
	take(ctx context.Context, n int) ([]string, error)
}

// ranged is a base whose ids can be issued as ranges.
type ranged interface {
	// takeRange takes up to n consecutive ids of its stripe, at least one.
	takeRange(ctx context.Context, n int) (segment.Range, error)
	// consecutive takes n consecutive ids.
	consecutive(ctx context.Context, n int) (segment.Range, error)
}

// stretched is a base whose ids come in runs of equal stride. It returns them as stretches,
// so that ids that are sent as first and count need not be written out.
type stretched interface {
	// stretches appends n ids to to, or returns an error.
	stretches(ctx context.Context, n int, to []firn.Stretch) ([]firn.Stretch, error)
}

// longest bounds how long a request waits while a store is away, or for the next ids of a generator.
const longest = 10 * time.Second

// ended is a canceled context: calls with it take only ids that are in memory.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// written formats ids as texts.
type written struct {
	numbers numbers
	write   func(firn.ID) (string, error)
}

func (w *written) take(ctx context.Context, n int) ([]string, error) {
	ids := make([]firn.ID, n)
	if err := w.numbers.fill(ctx, ids); err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i, id := range ids {
		var err error
		if out[i], err = w.write(id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// veiled hides the order of ids.
type veiled struct {
	numbers
	cipher *veil.Cipher
}

func (v veiled) fill(ctx context.Context, ids []firn.ID) error {
	if err := v.numbers.fill(ctx, ids); err != nil {
		return err
	}
	for i, id := range ids {
		var err error
		if ids[i], err = v.cipher.Veil(id); err != nil { // of a layout: counters end where the veil does
			return fmt.Errorf("%w: %w", firn.ErrTimeExhausted, err)
		}
	}
	return nil
}

// join appends s, by extending the last stretch if s continues it.
func join(to []firn.Stretch, s firn.Stretch) []firn.Stretch {
	if last := len(to) - 1; last >= 0 {
		if l := &to[last]; l.Stride == s.Stride && l.First+firn.ID(l.Count)*l.Stride == s.First {
			l.Count += s.Count
			return to
		}
	}
	return append(to, s)
}
