// Package dial connects to the servers of a store. It is for authors of stores whose client takes a dialer; programs
// that use a store do not need it.
//
// A running process that holds a worker must reach its store again before newcomers stop waiting for it: 12 s. So a
// lost address, name server or host may take only a part of that, and each connection uses the addresses and
// certificates of that moment. Clients' own dialers give a short time-out to the first address alone, look
// names up once, or try lost hosts one by one.
//
// And whatever answers at the store's address must not end the process or take its memory: connections bound
// and check what is read from them, before the client does. See [Guard].
package dial

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// lookupTimeout outlasts a silent first name server: resolvers wait 5 s for each, and try twice.
	lookupTimeout = 20 * time.Second
	// connectTimeout bounds the attempt with one address, TLS included.
	connectTimeout = 2 * time.Second
	// headStart is the time of each address, or host, before the next.
	headStart = 250 * time.Millisecond

	// Timeout is 25 s. It bounds a dial. It outlives the call that began it: let the client finish it, and a later call
	// use the connection.
	Timeout = 25 * time.Second // lookupTimeout, and five more for the connection
)

// A Dialer connects to hosts by their names. It may be used concurrently.
type Dialer struct {
	TLS    func() *tls.Config // makes the configuration of a handshake; nil: no TLS. Without a ServerName, the name is that of the host
	Check  func() Check       // makes the check of a connection, above TLS; nil: only the bytes of answers are bounded
	Report *Report            // nil: none

	unserved sync.Map // by HOST:PORT of a name: the address whose latest connection ended unserved

	// Nil: those of package net.
	Lookup  func(ctx context.Context, host string) ([]string, error)
	Connect func(ctx context.Context, network, addr string) (net.Conn, error)
}

// alive detects lost peers of idle connections within 45 s.
var alive = net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3}}

// Dial looks up a HOST:PORT and returns the first connection to one of its addresses. It begins with the next
// address when one has failed, or has not answered for a quarter of a second. Without a host it is this machine.
// On the network unix the address is a path.
//
// If the latest connection to an address ended before the server answered, or with [Unserved], Dial takes that address
// only if all others fail, until it has answered again: a server that hangs still accepts connections.
//
// The connection ends with an [ErrMalformed] when an answer is longer than [MaxAnswer], or than 1 MiB if the check says
// that it lists nothing, or the check refuses it.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if network == "unix" {
		return d.one(ctx, network, addr, "")
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	addrs := []string{""} // a server of a cluster may not know its own address
	if host != "" {
		addrs, err = d.Addresses(ctx, host)
	}
	if err != nil {
		return nil, err
	}
	connect := func(ctx context.Context, to string) (net.Conn, error) {
		c, err := d.one(ctx, network, net.JoinHostPort(to, port), host)
		if g, ok := c.(ender); ok {
			g.onUse(func() { d.unserved.CompareAndDelete(addr, to) }, func() { d.unserved.Store(addr, to) })
		}
		return c, err
	}
	last, _ := d.unserved.Load(addr)
	i := slices.IndexFunc(addrs, func(a string) bool { return a == last })
	if i < 0 || len(addrs) == 1 {
		return first(ctx, addrs, connect)
	}
	// That one accepts connections at once: in a race it would win again.
	c, err := first(ctx, slices.Concat(addrs[i+1:], addrs[:i]), connect)
	if err == nil {
		return c, nil
	}
	c, lastErr := connect(ctx, addrs[i])
	if lastErr != nil {
		return nil, fmt.Errorf("%w; %w", err, lastErr)
	}
	return c, nil
}

// Addresses looks up the addresses of a host, for clients that do so before they dial.
func (d *Dialer) Addresses(ctx context.Context, host string) ([]string, error) {
	lookup := net.DefaultResolver.LookupHost
	if d.Lookup != nil {
		lookup = d.Lookup
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addrs, err := lookup(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = fmt.Errorf("%s has no address", host)
	}
	return addrs, err
}

// DialAny is Dial for several hosts that serve the same store: it begins with the next one as Dial does with
// the next address. Hosts whose latest connection ended before they answered come last.
func (d *Dialer) DialAny(ctx context.Context, network string, hosts []string) (net.Conn, error) {
	var served, others []string
	for _, host := range hosts {
		if _, hung := d.unserved.Load(host); hung {
			others = append(others, host)
		} else {
			served = append(served, host)
		}
	}
	hosts = append(served, others...)
	return first(ctx, hosts, func(ctx context.Context, addr string) (net.Conn, error) { return d.Dial(ctx, network, addr) })
}

// first returns the first connection of dials that begin one after the other.
func first(ctx context.Context, to []string, dial func(context.Context, string) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx) // the others end once one has connected
	defer cancel()
	type answer struct {
		conn net.Conn
		err  error
	}
	answers := make(chan answer)
	var failed error
	for begun, ended := 0, 0; ended < len(to); {
		var next <-chan time.Time
		if begun < len(to) {
			addr := to[begun]
			go func() {
				conn, err := dial(ctx, addr)
				select {
				case answers <- answer{conn, err}:
				case <-ctx.Done():
					if err == nil {
						discard(conn) // another was first, or the caller has given up
					}
				}
			}()
			begun++
			next = time.After(headStart)
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, ctx.Err()
		case a := <-answers:
			if a.err == nil {
				return a.conn, nil
			}
			if ended++; ended == 1 {
				failed = a.err
			} else {
				failed = fmt.Errorf("%w; %w", failed, a.err)
			}
		}
	}
	return nil, failed
}

// one connects to one address of a host.
func (d *Dialer) one(ctx context.Context, network, addr, host string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	connect := alive.DialContext
	if d.Connect != nil {
		connect = d.Connect
	}
	conn, err := connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if d.TLS == nil {
		return d.guard(conn), nil
	}
	config := d.TLS()
	if config.ServerName == "" {
		config.ServerName = host
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake's error says more
		return nil, fmt.Errorf("TLS handshake with %s: %w", addr, err)
	}
	return d.guard(secured), nil
}
