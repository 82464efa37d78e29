package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/firn-id/firn/store"
)

// Open returns a store in the Redis that a URL names, and asks it for its
// replicas. No error repeats the password.
//
//	redis://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/DATABASE][?SETTINGS]
//
// With rediss it speaks TLS. Several hosts are a cluster; with master they are
// Sentinels. A password with one of the characters @ : / ? # % is escaped as in
// any URL. Settings:
//
//	key=NAME               of the sorted set; default firn
//	replicas=N             that a claim waits for; default 1 where there are any
//	cluster=true           one host of a cluster is enough
//	master=NAME            the hosts are Sentinels that watch over NAME
//	sentinel_password=...  of the Sentinels
//	tls_ca=FILE            certificates of who may sign the server's
//	tls_cert=FILE          a certificate to show, with its tls_key=FILE
//	tls_server_name=NAME   the name in the server's certificate, if not the host's
func Open(ctx context.Context, text string) (*Store, error) {
	options, cfg, err := parseURL(text)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w: %w", store.ErrRefused, err)
	}
	client := redis.NewUniversalClient(options)
	s, err := New(ctx, client, cfg)
	if err != nil && options.TLSConfig != nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w (if it does not speak TLS, use redis:// instead of rediss://)", err)
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return s, nil
}

const (
	dialTimeout = 5 * time.Second
	// callTimeout is less than a look apart: an answer that is later is asked for anew.
	callTimeout = 3 * time.Second
	// poolSize bounds connections: a lease needs one, sequences a few.
	poolSize    = 16
	defaultPort = "6379"
)

// parseURL says what a URL means. Its errors quote only what cannot hold a
// password.
func parseURL(text string) (*redis.UniversalOptions, Config, error) {
	var cfg Config
	scheme, rest, _ := strings.Cut(text, "://")
	if scheme != "redis" && scheme != "rediss" {
		return nil, cfg, errors.New("a URL begins with redis:// or rediss://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	user, rest, hasUser := cutLast(rest, "@")
	hosts, database, _ := strings.Cut(rest, "/")
	options := &redis.UniversalOptions{
		Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		// An applied write that is repeated would be answered as a conflict.
		MaxRetries: -1, DialerRetries: 1,
		DialTimeout: dialTimeout, ReadTimeout: callTimeout, WriteTimeout: callTimeout, PoolSize: poolSize,
	}
	var errs []error
	if hasUser {
		name, password, ok := strings.Cut(user, ":")
		var err1, err2 error
		options.Username, err1 = url.PathUnescape(name)
		options.Password, err2 = url.PathUnescape(password)
		if !ok || err1 != nil || err2 != nil {
			errs = append(errs, errors.New("what stands before @ is USER:PASSWORD or :PASSWORD, with the characters @ : / ? # % escaped as in %40"))
		}
	}
	for host := range strings.SplitSeq(hosts, ",") {
		addr, err := address(host)
		errs = append(errs, err)
		options.Addrs = append(options.Addrs, addr)
	}
	if database = strings.TrimSuffix(database, "/"); database != "" {
		n, err := strconv.Atoi(database)
		if err != nil || n < 0 {
			errs = append(errs, fmt.Errorf("database %q is not a number from 0 up", database))
		}
		options.DB = n
	}
	errs = append(errs, settings(query, options, &cfg, scheme == "rediss"))
	if (options.IsClusterMode || len(options.Addrs) > 1 && options.MasterName == "") && options.DB != 0 {
		errs = append(errs, fmt.Errorf("database %d: a cluster has database 0 only", options.DB))
	}
	return options, cfg, errors.Join(errs...)
}

// cutLast cuts around the last separator, as a password may have been left unescaped.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return "", s, false
}

func address(host string) (string, error) {
	if host == "" {
		return "", errors.New("the URL names no host, as in redis://127.0.0.1:6379/0")
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return host + ":" + defaultPort, nil
	}
	if !strings.Contains(host, ":") {
		return net.JoinHostPort(host, defaultPort), nil
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil || name == "" {
		return "", errors.New("a host is HOST or HOST:PORT, an IPv6 address in brackets")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("the port of host %q is not a number from 1 to 65535", name)
	}
	return host, nil
}

// settings reads the query of a URL.
func settings(query string, options *redis.UniversalOptions, cfg *Config, secure bool) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the settings after ? are NAME=VALUE, joined by & and escaped as in any URL")
	}
	var errs []error
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var cert, key string
	for name, list := range values {
		if len(list) != 1 || list[0] == "" {
			errs = append(errs, fmt.Errorf("setting %s needs one value", name))
			continue
		}
		value := list[0]
		switch name {
		case "key":
			cfg.Key = value
		case "replicas":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || n > 100 {
				errs = append(errs, fmt.Errorf("replicas=%s is not a number from 0 to 100", value))
			}
			if cfg.Replicas = n; n == 0 {
				cfg.Replicas = -1
			}
		case "cluster":
			if options.IsClusterMode, err = strconv.ParseBool(value); err != nil {
				errs = append(errs, fmt.Errorf("cluster=%s is neither true nor false", value))
			}
		case "master":
			options.MasterName = value
		case "sentinel_password":
			options.SentinelPassword = value
		case "tls_ca":
			config.RootCAs, err = pool(value)
			errs = append(errs, err)
		case "tls_cert":
			cert = value
		case "tls_key":
			key = value
		case "tls_server_name":
			config.ServerName = value
		default:
			errs = append(errs, fmt.Errorf("there is no setting %s: key, replicas, cluster, master, sentinel_password, tls_ca, tls_cert, tls_key and tls_server_name are", name))
		}
		if strings.HasPrefix(name, "tls_") && !secure {
			errs = append(errs, fmt.Errorf("setting %s is for rediss://", name))
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		errs = append(errs, err)
		config.Certificates = []tls.Certificate{pair}
	}
	if options.IsClusterMode && options.MasterName != "" {
		errs = append(errs, errors.New("cluster and master exclude each other"))
	}
	if secure {
		options.TLSConfig = config
	}
	return errors.Join(errs...)
}

func pool(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("tls_ca: %w", err)
	}
	certificates := x509.NewCertPool()
	if !certificates.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls_ca: %s has no certificate in PEM form", file)
	}
	return certificates, nil
}
