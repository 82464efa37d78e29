package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store/hosturl"
)

// redisServer is a server that counts with INCR: firn serve, or Redis itself.
type redisServer struct {
	client *redis.Client
	key    string
}

func redisTarget(text string, l load) (target, error) {
	u := hosturl.Parse(text, "6379", "redis", "rediss")
	options := &redis.Options{
		Username: u.User, Password: u.Password,
		Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1, // a repeated INCR would be counted once
		DialerRetries:            1,
		DialTimeout:              benchTimeout, ReadTimeout: benchTimeout, WriteTimeout: benchTimeout, PoolTimeout: benchTimeout,
		PoolSize: l.callers, // a connection for each
	}
	if configure := u.TLS(u.Scheme == "rediss", "rediss://"); configure != nil {
		options.TLSConfig = configure()
	}
	if len(u.Hosts) > 1 {
		u.Fail(errors.New("one host is measured at a time"))
	}
	if l.batch > 1 {
		u.Fail(errors.New("INCR gives one id: --pipeline sends many at once, and --batch is for http://"))
	}
	if l.buffered || l.tokenFile != "" {
		u.Fail(errors.New("--buffered and --token-file are for http://; put the password into the URL"))
	}
	if err := u.Err(); err != nil {
		return target{}, usage(fmt.Errorf("target %q: %w", storeurl.Redact(text), err))
	}
	storeurl.QuietRedis()
	options.Addr = u.Hosts[0]
	t := &redisServer{client: redis.NewClient(options), key: u.Path}
	if t.key == "" {
		t.key = defaultNamespace
	}
	return target{fill: t.fill, every: always, close: t.client.Close}, nil
}

func (t *redisServer) fill(ctx context.Context, ids []firn.ID) (int, error) {
	ctx = context.WithoutCancel(ctx) // a request in flight is finished, as over HTTP
	if len(ids) == 1 {
		n, err := t.client.Incr(ctx, t.key).Result()
		if err != nil {
			return 0, fmt.Errorf("INCR %s: %w", t.key, err)
		}
		ids[0] = firn.ID(n)
		return 1, nil
	}
	answers, err := t.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range ids {
			p.Incr(ctx, t.key)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("INCR %s: %w", t.key, err)
	}
	for i, answer := range answers {
		one, ok := answer.(*redis.IntCmd)
		if !ok {
			return i, fmt.Errorf("INCR %s: %T and no number was answered", t.key, answer)
		}
		ids[i] = firn.ID(one.Val())
	}
	return len(ids), nil
}
