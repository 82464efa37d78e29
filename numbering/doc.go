// Package numbering makes business numbers: counted from 1 in each day, month or
// year, and written as a template says.
//
//	all, err := sequence.Open(sequence.Config{Store: s})
//	...
//	orders, err := all.Name("orders")
//	f, err := numbering.New(numbering.Config{Template: "ORD{yyyyMMdd}-{n:6}", Zone: zone, Counter: orders})
//	text, err := f.Next(ctx) // ORD20261121-000042
//
// The counter is one strictly increasing sequence over all processes, whose ids
// are the period and the number in it. So the period changes once for all of them:
// when the first process finds that a new one has begun, and after that nobody
// issues a number of the old one again, whatever their clocks show.
//
// Numbers are unique and increase; they may have gaps, where a call failed. What
// they do not hide is how many there were.
package numbering
