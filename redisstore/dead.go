package redisstore

import (
	"context"
	"net"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// neverFails returns a dialer whose failures are connections: the error comes from their first write.
//
// After as many dials in a row as its pool has connections, go-redis returns the last error without a dial,
// until one goroutine, which tries once a second, has connected. With slow name servers a holder then found
// its store later than newcomers wait for it.
//
// The client of a cluster keeps its dialer: a dial that fails sends it to another server. So a
// holder found its nodes 2.9 s after they were back, when they had answered nothing for 30 s; newcomers wait 12 s.
func neverFails(options *redis.UniversalOptions, dial dialer) dialer {
	if options.IsClusterMode {
		return dial
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return dead{err, addr}, nil
		}
		return conn, nil
	}
}

// dead is a connection that was not made.
type dead struct {
	err  error
	addr string
}

var _ syscall.Conn = dead{}

func (d dead) Read([]byte) (int, error)  { return 0, d.err }
func (d dead) Write([]byte) (int, error) { return 0, d.err }

// SyscallConn fails the pool's check of an idle connection. The pool keeps what was dialed for a call that
// has ended, and would give it to a later call, which would fail without a dial.
func (d dead) SyscallConn() (syscall.RawConn, error) { return nil, d.err }

func (dead) Close() error                     { return nil }
func (d dead) LocalAddr() net.Addr            { return d }
func (d dead) RemoteAddr() net.Addr           { return d }
func (dead) SetDeadline(time.Time) error      { return nil }
func (dead) SetReadDeadline(time.Time) error  { return nil }
func (dead) SetWriteDeadline(time.Time) error { return nil }
func (dead) Network() string                  { return "tcp" }
func (d dead) String() string                 { return d.addr }
