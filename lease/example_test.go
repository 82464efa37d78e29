package lease_test

import (
	"context"
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

// Two generators lease their workers from one store. In real life they are
// processes, and the store is one they share: see package sqlstore.
func Example() {
	ctx := context.Background()
	shared := memstore.New(nil)
	cfg := lease.Config{Store: shared, Pool: "orders"}
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

// ordinals is a source of workers of one's own: an orchestrator that gives each
// replica its number, and gives it to no other while that runs. It needs no
// fence, so its grants last for ever.
type ordinals struct{ number int64 }

func (o ordinals) Acquire(_ context.Context, ask lease.Ask) (firn.Grant, error) {
	return firn.Grant{Worker: o.number, After: ask.From - 1, Through: firn.Tick(firn.MaxID)}, nil
}

func (o ordinals) Renew(_ context.Context, held firn.Grant, _ lease.Ask) (firn.Grant, error) {
	return held, nil
}

func (o ordinals) Look(context.Context, firn.Grant) error { return nil }

func (o ordinals) Release(context.Context, firn.Grant, firn.Tick) error { return nil }

func ExampleKeep() {
	ctx := context.Background()
	l, err := lease.Keep(ctx, ordinals{number: 3}, lease.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { fmt.Println(l.Close(ctx)) }()
	id, err := l.Next(ctx)
	fmt.Println(id > 0, l.State().Worker, err)
	// Output:
	// true 3 <nil>
	// <nil>
}
