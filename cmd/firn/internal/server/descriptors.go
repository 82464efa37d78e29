package server

import (
	"fmt"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/store"
)

// sharesOf returns the limits of what all clients use, within what the process can have.
func (s *Server) sharesOf(cfg settings.Config) share.Limits {
	n := min(cfg.Limits.MaxConnections(), affordable(descriptors(), s.listeners()))
	return share.Limits{HTTP: n, Redis: n, Requests: cfg.Limits.MaxConnections(), Percent: cfg.Limits.MaxShare()}
}

// reserve is how many descriptors the server keeps for everything except its clients: the store, files, and spare
// connections. Of few descriptors it keeps half: reserved.
const reserve = 128

func reserved(descriptors int) int { return min(reserve, descriptors/2) }

// spares returns how many connections above its limit a listener serves, one request each, and only for probes. Two
// listeners have them, HTTP and gRPC, and together take half of the reserve.
func spares(descriptors int) int {
	if descriptors == 0 {
		return reserve / 4
	}
	return max(1, reserved(descriptors)/4)
}

// listeners returns how many listeners share the descriptors.
func (s *Server) listeners() int {
	if on := s.addresses.Load(); on != nil {
		return len(*on)
	}
	return 1
}

// affordable returns how many connections each listener can have with so many descriptors, 0 for any number.
func affordable(descriptors, listeners int) int {
	if descriptors == 0 {
		return 1 << 30
	}
	return max(1, (descriptors-reserved(descriptors))/listeners)
}

// plenty is how many connections of each listener are enough where the configuration does not name a number.
const plenty = 1000

// examineDescriptors reports that the process cannot have as many connections as are configured. They are fewer then, so that the
// store, files and probes still get descriptors.
func examineDescriptors(cfg settings.Config, listeners int) []store.Finding {
	limit, configured := descriptors(), cfg.Limits.MaxConnections()
	n := affordable(limit, listeners)
	if n >= configured || cfg.Limits.Connections == nil && n >= plenty {
		return nil
	}
	return []store.Finding{{
		Subject: "connections", Verdict: store.Doubtful,
		Says:   fmt.Sprintf("the process may open too few files for its connections: with %d descriptors each listener has %d of the %d connections of limits.connections", limit, n, configured),
		Advice: fmt.Sprintf("raise ulimit -n (LimitNOFILE= in systemd, ulimits in Docker) to %d, or write limits: {connections: %d}", listeners*configured+reserve, n),
	}}
}
