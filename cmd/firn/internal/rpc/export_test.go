package rpc

import "time"

// SetStall sets how long a client may leave a message untaken.
func (a *API) SetStall(d time.Duration) { a.stall = d }

// Open returns how many streams there are: of ids and of health.
func (a *API) Open() (ids, health int) { return len(a.streams), len(a.watches) }

// Occupy takes all places for streams of ids, or gives them back.
func (a *API) Occupy(take bool) {
	for range cap(a.streams) {
		if take {
			a.streams <- struct{}{}
		} else {
			leave(a.streams)
		}
	}
}
