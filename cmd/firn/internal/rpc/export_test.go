package rpc

import (
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// SetStall sets how long a client may leave a message unread.
func (a *API) SetStall(d time.Duration) { a.stall = d }

// Open returns the numbers of open streams of ids and of watches of health.
func (a *API) Open() (ids, health int) {
	return a.service.Shares().Used(share.Streams), a.service.Shares().Used(share.Watches)
}

// Occupy takes or frees all places for streams of ids, and for watches.
func (a *API) Occupy(take bool) {
	of := a.service.Shares().Token("of a test")
	defer of.Leave()
	for _, r := range []share.Resource{share.Streams, share.Watches} {
		if all, _ := a.service.Shares().Of(r); take {
			of.Take(r, all)
		} else {
			of.Give(r, all)
		}
	}
}
