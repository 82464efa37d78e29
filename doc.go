// Package firn makes unique, time-ordered 64-bit ids, as Twitter's snowflake
// and its many descendants do.
//
//	g, err := firn.New(7, firn.Config{})
//	id, err := g.Next(ctx)
//
// A [Layout] says how an id's 63 bits are divided into time, datacenter, worker
// and sequence; [ParseLayout] knows the usual ones by name. A [Generator] makes
// the ids of one worker from a steady clock, or from the wall clock with a
// [Rollback] chain, which says what to do when it goes back. An [ID] is a plain
// integer with text forms that sort.
//
// The package assumes, and cannot check, that no two generators of one pool
// have the same worker number. Package lease assigns numbers so that this
// holds whatever clocks, crashes and networks do; without it, you are
// responsible for the number.
//
// When not to use it: for ids that must not reveal when they were made, that
// must have no gaps, or that must be greater than every earlier id across
// processes.
package firn
