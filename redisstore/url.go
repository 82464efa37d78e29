package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/dial"
	"github.com/firn-id/firn/store/hosturl"
)

// Open returns a store in the Redis that a URL names, as [OpenClient] does. No error repeats the password.
//
//	redis://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/DATABASE][?SETTINGS]
//
// With rediss it speaks TLS. Several hosts are a cluster; with master they are Sentinels. A password with
// one of the characters @ : / ? # % is escaped as in any URL. Settings:
//
//	key=NAME               of the sorted set; default firn
//	replicas=N             that must have a write; default all that were ever attached
//	cluster=true           one host of a cluster is enough
//	master=NAME            the hosts are Sentinels that monitor NAME
//	sentinel_password=...  of the Sentinels
//	tls_ca=FILE            certificates that may sign the server's
//	tls_cert=FILE          a certificate to show, with its tls_key=FILE
//	tls_server_name=NAME   the name in the server's certificate, if not the host's
//
// The client, go-redis, would also write to standard error by itself. Open silences it, once and for the
// whole program: a program that uses go-redis too, and wants its log, calls redis.SetLogger after Open.
func Open(ctx context.Context, text string) (*Store, error) {
	dialer := new(dial.Dialer)
	options, cfg, err := parseURL(text, dialer)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w: %w", store.ErrRefused, err)
	}
	quiet()
	client := clientOf(options)
	s, err := OpenClient(ctx, client, cfg)
	if err != nil && dialer.TLS != nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w (if it does not speak TLS, use redis:// instead of rediss://)", err)
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if options.MasterName != "" {
		s.sentinels = options
	}
	return s, nil
}

func clientOf(options *redis.UniversalOptions) redis.UniversalClient {
	if options.MasterName != "" {
		return throughSentinels(options)
	}
	return redis.NewUniversalClient(options)
}

// quiet keeps go-redis from writing to standard error, for the whole program. Its calls return their
// errors anyway, and its log has only one setting, of the package. Only the first call has an effect.
var quiet = sync.OnceFunc(logging.Disable)

const (
	callTimeout = 3 * time.Second // as long as holders wait between looks by default
	poolSize    = 16              // bounds connections: a lease needs one, sequences a few
	defaultPort = "6379"
	// maxIdleTime is shorter than the time after which firewalls forget an idle connection.
	maxIdleTime = time.Minute
	// maxIdle bounds idle connections that have no limit of age. Each that the network has silently forgotten costs a
	// holder one look, 2 s, and newcomers wait 12 s for it. Others may all be idle: connecting to a far server takes long.
	maxIdle = 3
)

func parseURL(text string, dialer *dial.Dialer) (*redis.UniversalOptions, Config, error) {
	u := hosturl.Parse(text, defaultPort, "redis", "rediss")
	if u.User != "" && u.Password == "" { // the client would be the user "default"
		u.Fail(errors.New("a user without a password cannot log in to Redis through a URL: write USER:PASSWORD@, with any password if the user needs none (nopass)"))
	}
	master := u.Setting("master")
	options := &redis.UniversalOptions{
		Addrs: u.Hosts, Username: u.User, Password: u.Password,
		Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		// A repeated write that was applied would look like a conflict.
		MaxRetries: -1, DialerRetries: 1,
		DialTimeout: dial.Timeout, ReadTimeout: callTimeout, WriteTimeout: callTimeout, PoolSize: poolSize, MaxIdleConns: maxIdle, ConnMaxIdleTime: maxIdleTime,

		IsClusterMode:    u.Bool("cluster") || len(u.Hosts) > 1 && master == "",
		MasterName:       master,
		SentinelPassword: u.Setting("sentinel_password"),
	}
	dialer.TLS, dialer.Check = u.TLS(u.Scheme == "rediss", "rediss://"), check
	options.Dialer = neverFails(options, dialer.Dial)
	cfg := Config{Key: u.Setting("key")}
	if n, ok := u.Int("replicas", 0, MaxReplicas); ok {
		cfg.Replicas = cmp.Or(n, -1)
	}
	if database := strings.TrimSuffix(u.Path, "/"); database != "" {
		n, err := strconv.Atoi(database)
		if err != nil || n < 0 {
			u.Fail(fmt.Errorf("database %q is not a number from 0", database))
		}
		options.DB = n
	}
	if options.IsClusterMode && options.MasterName != "" {
		u.Fail(errors.New("cluster and master exclude each other"))
	}
	if options.IsClusterMode && options.DB != 0 {
		u.Fail(fmt.Errorf("database %d: a cluster has database 0 only", options.DB))
	}
	if !options.IsClusterMode && master == "" {
		// Not with Sentinels: no call would succeed while they are down. They end the connections to a primary that they replace.
		options.ConnMaxLifetime, options.MaxIdleConns = backend.ConnectionLife, poolSize
	}
	return options, cfg, u.Err()
}
