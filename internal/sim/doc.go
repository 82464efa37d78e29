// Package sim plays histories of many processes with the real generators, leases, buffers, segments
// and sequences, in virtual time: clocks that step, drift and stand still, processes that crash, pause
// and resume, a network that loses, delays and reorders messages, a store that is unavailable, stale,
// wiped or set back. A seed determines everything; every id is compared with all others.
//
//	go run ./internal/sim/search -seeds 10000          # search
//	go run ./internal/sim/search -seed 4711 -trace     # replay one history
//
// The promises it checks in each [Regime] are those of docs/protocol.md.
package sim
