package firntest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/lease"
)

// The code in the package's comment.
func Example() {
	ctx := context.Background()
	clock := firntest.NewClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	g, err := firn.New(7, firn.Config{Clock: firn.ClockWall, Time: clock})
	if err != nil {
		panic(err)
	}
	before, err := g.Next(ctx)
	fmt.Println(before.Time(g.Layout()).Format(time.TimeOnly), err)
	clock.Step(-time.Minute) // an operator corrects the clock
	_, err = g.Next(ctx)
	fmt.Println(errors.Is(err, firn.ErrClockBack))
	clock.Pass(2 * time.Minute) // takes no time
	after, err := g.Next(ctx)
	fmt.Println(after > before, err)
	// Output:
	// 12:00:00 <nil>
	// true
	// true <nil>
}

// What does each call get when the clock goes back, at last by an hour? The program under test has worker 7,
// and the spare 1007. The example takes a moment, not hours.
func ExampleClock() {
	ctx := context.Background()
	clock := firntest.NewClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	chain, err := firn.ParseRollback("wait 500ms, history 2000, switch, refuse")
	if err != nil {
		panic(err)
	}
	l, err := lease.Keep(ctx, lease.Fixed(7, 1007), lease.Config{
		Generator: firn.Config{Clock: firn.ClockWall, Rollback: chain, Time: clock},
	})
	if err != nil {
		panic(err)
	}
	defer l.Close(ctx)

	call := func(what string) {
		slept := clock.Slept()
		id, err := l.Next(ctx)
		fmt.Printf("%-14s %s  ", what, clock.Wall().Format("15:04:05.000"))
		if back := (*firn.ClockBackError)(nil); errors.As(err, &back) {
			fmt.Printf("refused: %v back\n", back.By)
			return
		}
		fmt.Printf("worker %4d, %s, waited %v\n", l.State().Worker, id.Time(firn.DefaultLayout()).Format("15:04:05.000"), clock.Slept()-slept)
	}
	clock.Pass(2 * time.Hour)
	call("right")
	clock.Step(-300 * time.Millisecond)
	call("300ms back")
	clock.Step(-1500 * time.Millisecond)
	call("1.5s back")
	clock.Step(-time.Hour)
	call("1h back")
	clock.Step(-time.Minute)
	call("1m back again")
	clock.Step(time.Hour + time.Minute)
	call("right again")
	// Output:
	// right          14:00:00.000  worker    7, 14:00:00.000, waited 0s
	// 300ms back     14:00:00.000  worker    7, 14:00:00.000, waited 300ms
	// 1.5s back      13:59:58.500  worker    7, 13:59:58.500, waited 0s
	// 1h back        12:59:58.500  worker 1007, 12:59:58.500, waited 0s
	// 1m back again  12:58:58.500  refused: 1m0s back
	// right again    13:59:58.500  worker 1007, 13:59:58.500, waited 0s
}
