// Package leases holds the end-to-end tests of leases and segments over real stores with real
// faults: servers killed, stopped, wiped and set back under running holders, and
// processes killed and started again.
//
//	go test -run '^$' -bench Segment -benchtime 10x ./cmd/firn/e2e/leases
package leases
