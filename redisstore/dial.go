package redisstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

const (
	// lookupTimeout outlasts a silent first name server: resolvers wait 5 s for each, and try twice.
	lookupTimeout = 20 * time.Second
	// connectTimeout bounds the attempt with one address, TLS included. It is short: a holder may have to
	// try several lost servers of a cluster, or Sentinels, before newcomers stop waiting.
	connectTimeout = 2 * time.Second
	// connectDelay is the head start of each address before the next.
	connectDelay = 250 * time.Millisecond
	// dialTimeout bounds all of it. A dial outlives the call that began it: the client finishes it, and a
	// later call uses the connection. With Sentinels it includes asking those that are silent.
	dialTimeout = lookupTimeout + 5*time.Second
)

// A dialer connects to a host by its name. The one of net gives all of a short timeout to the first
// address: if that is of a lost machine, no call ever connects, although another address answers.
type dialer struct {
	secure  *tls.Config // nil: no TLS
	lookup  func(ctx context.Context, host string) ([]string, error)
	connect func(ctx context.Context, network, addr string) (net.Conn, error)
}

func newDialer(secure *tls.Config) *dialer {
	alive := net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3} // as the client's own
	return &dialer{secure: secure, lookup: net.DefaultResolver.LookupHost, connect: (&net.Dialer{KeepAliveConfig: alive}).DialContext}
}

// dial looks the host up and returns the first connection to one of its addresses. It begins with the
// next address when one has failed, or has not answered for connectDelay.
func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	addrs := []string{""} // this machine: a server of a cluster may not know its own address
	if host != "" {
		looking, cancel := context.WithTimeout(ctx, lookupTimeout)
		addrs, err = d.lookup(looking, host)
		cancel()
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx) // the others end once one has connected
	defer cancel()
	type answer struct {
		conn net.Conn
		err  error
	}
	answers := make(chan answer)
	failed := fmt.Errorf("%s has no address", host)
	for begun, ended := 0, 0; ended < len(addrs); {
		var next <-chan time.Time
		if begun < len(addrs) {
			to := net.JoinHostPort(addrs[begun], port)
			go func() {
				conn, err := d.one(ctx, network, to, host)
				select {
				case answers <- answer{conn, err}:
				case <-ctx.Done():
					if err == nil {
						_ = conn.Close() // another was first, or the caller has given up
					}
				}
			}()
			begun++
			next = time.After(connectDelay)
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
func (d *dialer) one(ctx context.Context, network, addr, host string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := d.connect(ctx, network, addr)
	if err != nil || d.secure == nil {
		return conn, err
	}
	config := d.secure.Clone()
	if config.ServerName == "" {
		config.ServerName = host
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake's error says more
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return secured, nil
}
