package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
)

// throughSentinels returns a client of the server that Sentinels name as the primary when it connects. The client's own
// asks the Sentinel that answered first, for as long as that answers: one that is cut off names the former primary for ever.
func throughSentinels(url *redis.UniversalOptions) *redis.Client {
	options := url.Simple()
	options.Addr = url.MasterName // only in texts
	connect := options.Dialer
	options.Dialer = neverFails(url, func(ctx context.Context, network, _ string) (net.Conn, error) {
		addr, err := primaryOf(ctx, url)
		if err != nil {
			return nil, err
		}
		return connect(ctx, network, addr)
	})
	return redis.NewClient(options)
}

// A named is a Sentinel's answer: the address of the primary, and the number of the failover that made it one.
type named struct {
	addr  string
	epoch int
	err   error
}

// primaryOf returns the address of the primary that the Sentinels of a URL name: of the answers of most of them, or of those
// that come within a second, the one of the latest failover.
func primaryOf(ctx context.Context, url *redis.UniversalOptions) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan named, len(url.Addrs))
	for _, addr := range url.Addrs {
		go func() { answers <- nameOf(ctx, url, addr) }()
	}
	var heard []named
	var failed error
	timer := time.NewTimer(askTimeout)
	defer timer.Stop()
	for pending := len(url.Addrs); pending > 0 && len(heard) <= len(url.Addrs)/2; {
		var late <-chan time.Time
		if len(heard) > 0 {
			late = timer.C
		}
		select {
		case got := <-answers:
			pending--
			if got.err != nil {
				failed = got.err
				continue
			}
			heard = append(heard, got)
		case <-late:
			pending = 0
		case <-ctx.Done():
			return "", errors.Join(failed, store.ContextError(ctx))
		}
	}
	if len(heard) == 0 {
		return "", fmt.Errorf("%w: no Sentinel answers, or they do not know ?master=%s: %w", store.ErrUnavailable, url.MasterName, failed)
	}
	return latest(heard).addr, nil
}

// latest returns the answer of the latest failover. Sentinels of two setups may name two primaries without one: then all
// connections must go to the same, and not to a store each.
func latest(heard []named) named {
	return slices.MaxFunc(heard, func(a, b named) int { return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(b.addr, a.addr)) })
}

// nameOf asks one Sentinel.
func nameOf(ctx context.Context, url *redis.UniversalOptions, addr string) named {
	c := redis.NewSentinelClient(sentinelOptions(url, addr))
	defer func() { _ = c.Close() }()
	state, err := c.Master(ctx, url.MasterName).Result()
	var epoch int
	if err == nil {
		epoch, err = strconv.Atoi(state["config-epoch"])
	}
	if err != nil {
		return named{err: fmt.Errorf("%w: Sentinel %s: %w", store.ErrUnavailable, addr, err)}
	}
	return named{net.JoinHostPort(state["ip"], state["port"]), epoch, nil}
}

func sentinelOptions(url *redis.UniversalOptions, addr string) *redis.Options {
	options := url.Simple()
	options.Addr, options.DB = addr, 0
	options.Username, options.Password = url.SentinelUsername, url.SentinelPassword
	return options
}
