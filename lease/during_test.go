package lease

import (
	"context"
	"time"
)

// during is a machine in a world that continues while a process sleeps.
type during struct {
	*machine
	offset time.Duration
	do     func()
}

func (d *during) Wall() time.Time { return d.machine.Wall().Add(d.offset) }

func (d *during) Sleep(ctx context.Context, t time.Duration) error {
	const parts = 4
	for range parts {
		if err := d.machine.Sleep(ctx, t/parts); err != nil {
			return err
		}
		d.do()
	}
	return nil
}
