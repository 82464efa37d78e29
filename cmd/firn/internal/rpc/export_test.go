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

// Occupy takes or frees all places for streams of ids.
func (a *API) Occupy(take bool) {
	all, _ := a.service.Shares().Of(share.Streams)
	of := a.service.Shares().Token("of a test")
	defer of.Leave()
	if take {
		of.Take(share.Streams, all)
	} else {
		of.Give(share.Streams, all)
	}
}
