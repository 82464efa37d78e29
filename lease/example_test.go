package lease_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

// Two generators lease their workers from one store. In real life they are
// processes, and the store is one they share: see package sqlstore.
func Example() {
	ctx := context.Background()
	shared := memstore.New(nil)
	cfg := lease.Config{Store: shared}
	a, err := lease.Open(ctx, cfg)
	if err != nil {
		panic(err)
	}
	b, err := lease.Open(ctx, cfg)
	if err != nil {
		panic(err)
	}
	fmt.Println("the same worker:", a.State().Worker == b.State().Worker)
	id, err := a.Next(ctx)
	fmt.Println(id > 0, err)
	fmt.Println(a.Close(ctx), b.Close(ctx))
	// Output:
	// the same worker: false
	// true <nil>
	// <nil> <nil>
}

// An orchestrator gives each replica a number, in its name, and gives it to no other while that runs.
func ExampleFixedFunc() {
	ctx := context.Background()
	ordinal := func(context.Context) (int64, error) {
		name := "ids-3" // os.Hostname() in a StatefulSet of Kubernetes
		_, number, _ := strings.Cut(name, "-")
		return strconv.ParseInt(number, 10, 64)
	}
	l, err := lease.Keep(ctx, lease.FixedFunc(ordinal), lease.Config{})
	if err != nil {
		panic(err)
	}
	id, err := l.Next(ctx)
	fmt.Println(id > 0, l.State().Worker, err)
	fmt.Println(l.Close(ctx))
	// Output:
	// true 3 <nil>
	// <nil>
}

// The process has worker 7, and the spare 1007 for when its clock goes back.
func ExampleFixed() {
	ctx := context.Background()
	clock := firntest.NewClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	l, err := lease.Keep(ctx, lease.Fixed(7, 1007), lease.Config{
		Generator: firn.Config{Clock: firn.ClockWall, Rollback: firn.Rollback{firn.SwitchWorker(), firn.Refuse()}, Time: clock},
	})
	if err != nil {
		panic(err)
	}
	clock.Pass(2 * time.Hour)
	_, err = l.Next(ctx)
	fmt.Println(l.State().Worker, err)
	clock.Step(-time.Hour)
	_, err = l.Next(ctx)
	fmt.Println(l.State().Worker, err)
	fmt.Println(l.Close(ctx))
	// Output:
	// 7 <nil>
	// 1007 <nil>
	// lease: worker 7 has ids up to 2026-11-20T14:00:00Z, ahead of the clock: start no process with its numbers before the clock has passed that, or it repeats them (over a store it would not)
}
