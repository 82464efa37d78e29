package redisstore_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// anyOf resolves each name to the same addresses.
func anyOf(addrs ...string) func(context.Context, string) ([]string, error) {
	return func(context.Context, string) ([]string, error) { return addrs, nil }
}

// silent is an address of a lost machine.
const silent = "192.0.2.1"

// connects connects as the network does, and has one address stay silent.
func connects(ctx context.Context, network, addr string) (net.Conn, error) {
	if host, _, _ := net.SplitHostPort(addr); host == silent {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func TestANameWithALostAddressIsReachedByAnother(t *testing.T) {
	t.Parallel()
	url := "redis://redis.test:" + strconv.Itoa(servers.Redis(t).Port())
	s, err := redisstore.OpenThrough(context.Background(), url, anyOf(silent, "127.0.0.1"), connects)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	confirmed(t, s, "through the second address")
}

// A silent name server takes longer than a look of a holder.
func TestALookupOutlivesTheCallThatBeganIt(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	answer, begun := make(chan struct{}), make(chan struct{})
	var lookups atomic.Int64
	lookup := func(ctx context.Context, _ string) ([]string, error) {
		switch n := lookups.Add(1); {
		case n > 2:
			return nil, errors.New("asked again")
		case n == 2:
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < 15*time.Second {
				t.Errorf("it has until %v", deadline)
			}
			close(begun)
			<-answer
		}
		return []string{"127.0.0.1"}, nil
	}
	s, err := redisstore.OpenThrough(context.Background(), "redis://redis.test:"+strconv.Itoa(server.Port()), lookup, connects)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server.Kill()
	server.Restart()
	for range 2 { // the first may find the broken connection
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		if _, err := s.Now(ctx); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("without an address: %v", err)
		}
		cancel()
	}
	<-begun
	close(answer)
	await(t, "the late connection", func() bool {
		_, err := s.Now(context.Background())
		return err == nil
	})
}

func TestDialing(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for what, test := range map[string]struct {
		addrs []string
		took  time.Duration
		errs  int
	}{
		"the first answers":          {[]string{"good", "good"}, 0, 0},
		"the first is silent":        {[]string{silent, "good"}, 250 * time.Millisecond, 0},
		"the first refuses":          {[]string{"refuses", "good"}, 0, 0},
		"the first two are silent":   {[]string{silent, silent, "good"}, 500 * time.Millisecond, 0},
		"all are silent":             {[]string{silent, silent}, 2250 * time.Millisecond, 2},
		"one is silent, one refuses": {[]string{silent, "refuses"}, 2 * time.Second, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			conn, err := redisstore.Dial(t.Context(), "name:6379", nil, anyOf(test.addrs...), func(ctx context.Context, _, addr string) (net.Conn, error) {
				switch host, _, _ := net.SplitHostPort(addr); host {
				case silent:
					<-ctx.Done()
					return nil, ctx.Err()
				case "refuses":
					return nil, refused
				}
				ours, _ := net.Pipe()
				return ours, nil
			})
			if took := time.Since(begun); took != test.took || (err != nil) != (test.errs > 0) || (conn == nil) != (test.errs > 0) {
				t.Errorf("%s: %v after %v", what, err, took)
			}
			if what == "one is silent, one refuses" && (!errors.Is(err, refused) || !errors.Is(err, context.DeadlineExceeded)) {
				t.Errorf("%s: %v lacks one", what, err)
			}
		})
	}
	conn, err := redisstore.Dial(t.Context(), ":6379", nil, anyOf(), func(_ context.Context, _, addr string) (net.Conn, error) {
		if addr != ":6379" {
			return nil, errors.New(addr)
		}
		ours, _ := net.Pipe()
		return ours, nil
	})
	if err != nil || conn == nil {
		t.Errorf("without a host: %v", err)
	}
	if _, err := redisstore.Dial(t.Context(), "name:6379", nil, anyOf(), nil); err == nil || !contains(err.Error(), "no address") {
		t.Error(err)
	}
}

// A balancer without a server behind it accepts and stays silent.
func TestTheHandshakeIsPartOfAnAttempt(t *testing.T) {
	t.Parallel()
	cert, key := authority(t, t.TempDir(), "redis.test")
	port := strconv.Itoa(servers.FreePort(t))
	servers.Redis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	quiet := servers.Silent(t)
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(pem)
	reach := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if host, _, _ := net.SplitHostPort(addr); host == silent {
			addr = quiet
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	conn, err := redisstore.Dial(t.Context(), "redis.test:"+port, config, anyOf(silent, "127.0.0.1"), reach)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	_, err = redisstore.Dial(t.Context(), "another.test:"+port, config, anyOf("127.0.0.1"), reach)
	if wrong := new(tls.CertificateVerificationError); !errors.As(err, &wrong) {
		t.Errorf("by another name: %v", err)
	}
}
