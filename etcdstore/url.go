package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/dial"
	"github.com/firn-id/firn/store/hosturl"
)

// Open returns a store in the etcd that a URL names. No error repeats the password.
//
//	etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/PREFIX][?SETTINGS]
//
// Keys begin with PREFIX and a slash, if there is one. Settings:
//
//	tls=true               it speaks TLS
//	tls_ca=FILE            certificates that may sign the servers'
//	tls_cert=FILE          a certificate to show, with its tls_key=FILE
//	tls_server_name=NAME   the name in the servers' certificates, if not the hosts'
func Open(ctx context.Context, text string) (*Store, error) {
	return openBy(ctx, text, new(dial.Dialer))
}

func openBy(ctx context.Context, text string, dialer *dial.Dialer) (*Store, error) {
	cfg, prefix, err := parseURL(text, dialer)
	if err != nil {
		return nil, fmt.Errorf("etcdstore: %w: %w", store.ErrRefused, err)
	}
	client, err := clientv3.New(cfg) // speaks to the server only to log in
	if err != nil {
		return nil, backend.NewCalls("etcdstore", backend.NewLanes(0), classify).Wrap("open prefix", prefix, err)
	}
	s, err := OpenClient(ctx, client, prefix)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.secures = true
	return s, nil
}

const (
	dialTimeout = 5 * time.Second
	// answerTimeout bounds the wait for a member's first answer.
	answerTimeout = 2 * time.Second
	// keepAlive is how long a connection may be silent before it is probed; gRPC allows no less.
	keepAlive = 10 * time.Second
	// keepAliveTimeout is how long the answer may take, and on Linux how long sent data may stay without a
	// TCP acknowledgement. Newcomers wait 12 s for a holder whose connection is dead.
	keepAliveTimeout = time.Second
	defaultPort      = "2379"
)

// reconnect is how soon a lost connection is tried again. By default that is up to two minutes: longer
// than newcomers wait for a holder when the store is back and has forgotten it.
var reconnect = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}

func parseURL(text string, dialer *dial.Dialer) (clientv3.Config, string, error) {
	u := hosturl.Parse(text, defaultPort, "etcd")
	if u.User != "" && u.Password == "" { // the client would not log in
		u.Fail(errors.New("a user without a password cannot log in to etcd through a URL: write USER:PASSWORD@"))
	}
	cfg := clientv3.Config{
		DialTimeout: dialTimeout, DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallRecvMsgSize: dial.MaxAnswer,
		Logger:             zap.NewNop(), // errors are returned
	}
	if configure := u.TLS(u.Bool("tls"), "tls=true"); configure != nil {
		dialer.TLS = func() *tls.Config {
			config := configure()
			config.NextProtos = []string{"h2"}
			return config
		}
	}
	// Otherwise a call would wait for a connection until its context ends, and not report why it fails.
	// A write is repeated only if it was not sent.
	cfg.MaxUnaryRetries = uint(len(u.Hosts)) + 2
	cfg.DialOptions = []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(calling(len(u.Hosts))),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: dial.Timeout}),
		// It speaks TLS too, as it tries several addresses. So the client gets none.
		grpc.WithContextDialer(dialing(dialer, u.Hosts)),
	}
	if u.User != "" {
		l := &login{name: u.User, password: u.Password, members: len(u.Hosts)}
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithPerRPCCredentials(l), grpc.WithChainUnaryInterceptor(l.logging))
	}
	for _, host := range u.Hosts {
		cfg.Endpoints = append(cfg.Endpoints, "http://"+host)
	}
	prefix := u.Levels()
	if prefix != "" {
		prefix += "/"
		u.Fail(store.CheckKey(prefix))
	}
	return cfg, prefix, u.Err()
}
