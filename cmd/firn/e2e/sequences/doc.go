// Package sequences holds the end-to-end tests of sequences over real stores: that what many
// callers of several processes received is linearizable while connections are
// cut, servers are killed and processes end; and how many ids a second there are
// beside the store's own way to count.
//
//	go test -run '^$' -bench Sequence -benchtime 2s ./cmd/firn/e2e/sequences
package sequences
