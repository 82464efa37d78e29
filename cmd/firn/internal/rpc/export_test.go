package rpc

import "time"

// SetStall sets how long a client may leave a message unread.
func (a *API) SetStall(d time.Duration) { a.stall = d }

// Open returns the numbers of open streams of ids and of watches of health.
func (a *API) Open() (ids, health int) { return len(a.streams), len(a.watches) }

// Occupy takes or frees all places for streams of ids.
func (a *API) Occupy(take bool) {
	for range cap(a.streams) {
		if take {
			a.streams <- struct{}{}
		} else {
			leave(a.streams)
		}
	}
}
