// Package sequences has the end-to-end tests of sequences over real stores. They check that the ids
// received by many callers of several processes are linearizable while connections are cut, servers
// are killed and processes end. Its benchmarks compare the ids per second with those of the store's
// native counter.
//
//	go test -run '^$' -bench Sequence -benchtime 2s ./cmd/firn/e2e/sequences
package sequences
