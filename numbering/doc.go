// Package numbering makes business numbers: counted from 1 in each day, month or
// year, and written as a template says.
//
//	all, err := sequence.New(sequence.Config{Store: s})
//	...
//	orders, err := all.Namespace("orders")
//	f, err := numbering.New(numbering.Config{Template: "ORD{yyyyMMdd}-{n:6}", Zone: zone, Counter: orders})
//	text, err := f.Next(ctx) // ORD20261121-000042
//
// The counter is one strictly increasing sequence over all processes. Its ids
// contain the period and the number in it, so the period changes for all processes
// at once: when the first of them finds that a new one has begun. After that no
// process issues a number of the old period, whatever its clock shows.
//
// The store keeps the template with the counter: a process with another template is
// refused with store.ErrTaken.
//
// Numbers are unique and increase. A failed call may leave a gap, and each call asks
// the store. Do not use it where the law forbids gaps, where numbers must not show how
// many were issued (see package veil), or for many ids a second: package segment is
// faster.
package numbering
