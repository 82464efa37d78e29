package examples_test

import (
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
)

// An inserted leap second sets the wall clock back by a second. Ids of a steady clock are ahead of it until
// the steady clock, a sixteenth slower, has been caught up with.
func Example_leapSecond() {
	ctx := context.Background()
	clock := firntest.NewClock(time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC))
	g, err := firn.New(7, firn.Config{Time: clock})
	if err != nil {
		panic(err)
	}
	ahead := func() time.Duration {
		id, err := g.Next(ctx)
		if err != nil {
			panic(err)
		}
		return id.Time(g.Layout()).Sub(clock.Wall())
	}
	ahead()
	clock.Pass(time.Second)
	ahead()
	clock.Step(-time.Second)
	fmt.Println("at once:", ahead())
	for seconds := 1; ; seconds++ {
		for range 1000 { // an id in each millisecond
			clock.Pass(time.Millisecond)
			ahead()
		}
		if ahead() <= 0 {
			fmt.Println("gone after", seconds, "s")
			return
		}
	}
	// Output:
	// at once: 1s
	// gone after 17 s
}
