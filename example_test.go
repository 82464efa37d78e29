package firn_test

import (
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn"
)

// A generator with a worker number that the program guarantees to be unique.
func Example() {
	g, err := firn.New(7, firn.Config{})
	if err != nil {
		panic(err)
	}
	first, err := g.Next(context.Background())
	if err != nil {
		panic(err)
	}
	second, err := g.Next(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(second > first, g.State().Worker, time.Since(first.Time(g.Layout())) < time.Minute)
	// Output: true 7 true
}

// Decode an id that another system has made.
func ExampleLayout_Decompose() {
	twitter, err := firn.ParseLayout("twitter")
	if err != nil {
		panic(err)
	}
	parts, err := twitter.Decompose(1541815603606036480)
	if err != nil {
		panic(err)
	}
	fmt.Println(twitter.Time(parts.Tick).Format(time.RFC3339Nano), parts.Worker, parts.Sequence)
	// Output: 2022-06-28T16:07:40.105Z 378 0
}

// Find the ids of a day, for a query on a primary key.
func ExampleLayout_Span() {
	l := firn.DefaultLayout()
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	lo, hi, err := l.Span(day, day.AddDate(0, 0, 1))
	if err != nil {
		panic(err)
	}
	fmt.Printf("SELECT count(*) FROM orders WHERE id BETWEEN %d AND %d\n", lo, hi)
	// Output: SELECT count(*) FROM orders WHERE id BETWEEN 249322851532800000 AND 249685239398399999
}

// Take a thousand ids with one atomic operation.
func ExampleGenerator_Take() {
	g, err := firn.New(7, firn.Config{})
	if err != nil {
		panic(err)
	}
	run, err := g.Take(context.Background(), 1000)
	if err != nil {
		panic(err)
	}
	distinct := map[firn.ID]bool{}
	for id := range run.All() {
		distinct[id] = true
	}
	fmt.Println(run.Len() == len(distinct), run.At(0) < run.At(run.Len()-1))
	// Output: true true
}

// The classic generator reads the wall clock, and has a chain of policies for when the
// clock goes back.
func ExampleParseRollback() {
	rollback, err := firn.ParseRollback("wait 500ms, history 2000, refuse")
	if err != nil {
		panic(err)
	}
	g, err := firn.New(7, firn.Config{Clock: firn.ClockWall, Rollback: rollback, Start: firn.StartZero})
	if err != nil {
		panic(err)
	}
	id, err := g.Next(context.Background())
	fmt.Println(id > 0, err, rollback)
	// Output: true <nil> wait 500ms 2, history 2000 500ms, refuse
}

func ExampleLayout_Readable() {
	l := firn.DefaultLayout()
	text, err := l.Readable(249681087299011313)
	if err != nil {
		panic(err)
	}
	id, err := l.ParseReadable(text)
	fmt.Println(text, id, err)
	// Output: 20261120-234330.062-w0372-s0753 249681087299011313 <nil>
}
