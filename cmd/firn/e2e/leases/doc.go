// Package leases has the end-to-end tests of leases and segments over real stores with real faults:
// servers are killed, paused, wiped and set back under running holders, and processes are killed
// and restarted.
//
//	go test -run '^$' -bench Segment -benchtime 10x ./cmd/firn/e2e/leases
package leases
