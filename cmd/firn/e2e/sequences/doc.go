// Package sequences holds the end-to-end tests of sequences over real stores. They check that the ids
// received by many callers of several processes are linearizable while connections are cut, servers
// are killed and processes end; and they measure ids per second against the store's own counter.
//
//	go test -run '^$' -bench Sequence -benchtime 2s ./cmd/firn/e2e/sequences
package sequences
