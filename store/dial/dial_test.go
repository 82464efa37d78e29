package dial_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store/dial"
)

// anyOf resolves each name to the same addresses.
func anyOf(addrs ...string) func(context.Context, string) ([]string, error) {
	return func(context.Context, string) ([]string, error) { return addrs, nil }
}

// silent is an address of a lost machine.
const silent = "192.0.2.1"

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
			conn, err := (&dial.Dialer{Lookup: anyOf(test.addrs...), Connect: func(ctx context.Context, _, addr string) (net.Conn, error) {
				switch host, _, _ := net.SplitHostPort(addr); host {
				case silent:
					<-ctx.Done()
					return nil, ctx.Err()
				case "refuses":
					return nil, refused
				}
				ours, _ := net.Pipe()
				return ours, nil
			}}).Dial(t.Context(), "tcp", "name:6379")
			if took := time.Since(begun); took != test.took || (err != nil) != (test.errs > 0) || (conn == nil) != (test.errs > 0) {
				t.Errorf("%s: %v after %v", what, err, took)
			}
			if what == "one is silent, one refuses" && (!errors.Is(err, refused) || !errors.Is(err, context.DeadlineExceeded)) {
				t.Errorf("%s: %v lacks one", what, err)
			}
		})
	}
	here := &dial.Dialer{Lookup: anyOf(), Connect: func(_ context.Context, _, addr string) (net.Conn, error) {
		if addr != ":6379" {
			return nil, errors.New(addr)
		}
		ours, _ := net.Pipe()
		return ours, nil
	}}
	if conn, err := here.Dial(t.Context(), "tcp", ":6379"); err != nil || conn == nil {
		t.Errorf("without a host: %v", err)
	}
	if _, err := here.Dial(t.Context(), "tcp", "name:6379"); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Error(err)
	}
}

// Of five machines one is left, and no lookup or connection of the others may delay it for long.
func TestOneOfSeveralHostsIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		d := &dial.Dialer{
			Lookup: func(ctx context.Context, host string) ([]string, error) {
				if asked = append(asked, host); host == "unknown" {
					return nil, errors.New("no such host")
				}
				return []string{host}, nil
			},
			Connect: func(ctx context.Context, _, addr string) (net.Conn, error) {
				if addr != "good:1" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				ours, _ := net.Pipe()
				return ours, nil
			},
		}
		begun := time.Now()
		if _, err := d.DialAny(t.Context(), "tcp", []string{"a:1", "b:1", "unknown:1", "c:1", "good:1", "d:1"}); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != 750*time.Millisecond || !slices.Equal(asked, []string{"a", "b", "unknown", "c", "good"}) {
			t.Errorf("after %v, asked %v", took, asked)
		}
	})
}

// A host that hangs accepts connections at once.
func TestAHostThatDidNotServeComesLast(t *testing.T) {
	var asked []string
	d := &dial.Dialer{
		Lookup: func(_ context.Context, host string) ([]string, error) { return []string{host}, nil },
		Connect: func(_ context.Context, _, addr string) (net.Conn, error) {
			asked = append(asked, addr)
			ours, theirs := net.Pipe()
			if addr != "hangs:1" {
				go func() {
					if _, err := theirs.Write([]byte("an answer")); err != nil {
						t.Error(err)
					}
				}()
			}
			return ours, nil
		},
	}
	for range 2 {
		c, err := d.DialAny(t.Context(), "tcp", []string{"hangs:1", "serves:1"})
		if err != nil {
			t.Fatal(err)
		}
		if len(asked) == 2 {
			if _, err := c.Read(make([]byte, 9)); err != nil {
				t.Error(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"hangs:1", "serves:1"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
}

// A balancer without a server behind it accepts and stays silent.
func TestTheHandshakeIsPartOfAnAttempt(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler()) // its certificate is for example.com
	defer server.Close()
	quiet, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	trusts := server.Client().Transport.(*http.Transport).TLSClientConfig
	trusts.ServerName = ""
	d := &dial.Dialer{TLS: trusts.Clone, Lookup: anyOf(silent, "127.0.0.1"),
		Connect: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if host, _, _ := net.SplitHostPort(addr); host == silent {
				addr = quiet.Addr().String()
			} else {
				addr = server.Listener.Addr().String()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}}
	conn, err := d.Dial(t.Context(), "tcp", "example.com:443")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	d.Lookup = anyOf("127.0.0.1")
	_, err = d.Dial(t.Context(), "tcp", "another.test:443")
	if wrong := new(tls.CertificateVerificationError); !errors.As(err, &wrong) {
		t.Errorf("by another name: %v", err)
	}
}

func TestAnUnansweredConnectionIsClosed(t *testing.T) {
	t.Parallel()
	for _, always := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			c := dial.Impatient(ours, 2*time.Second, always)
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			ask := func() {
				t.Helper()
				if _, err := c.Write([]byte("?")); err != nil {
					t.Error(err)
				}
			}
			answer := func() {
				t.Helper()
				go func() { _, _ = theirs.Write([]byte("!")) }()
				if _, err := c.Read(make([]byte, 1)); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(time.Hour) // nothing was asked
			ask()
			time.Sleep(1999 * time.Millisecond)
			ask() // does not count as an answer
			answer()
			time.Sleep(time.Hour)
			ask()
			time.Sleep(2001 * time.Millisecond)
			_, err := c.Write([]byte("?"))
			if closed := errors.Is(err, io.ErrClosedPipe); closed != always {
				t.Errorf("always %v: %v", always, err)
			}
			_ = c.Close() // it may be closed
			_ = theirs.Close()
		})
	}
}

// A server that hangs accepts connections; one without a quorum answers, but not what matters.
func TestADialBeginsAfterTheAddressThatDidNotServe(t *testing.T) {
	t.Parallel()
	var dialed string
	d := &dial.Dialer{Lookup: anyOf("a", "b", "c"), Connect: func(_ context.Context, _, addr string) (net.Conn, error) {
		dialed = addr
		ours, theirs := net.Pipe()
		go func() { _, _ = theirs.Write([]byte("!")) }() // until the other side is closed
		return ours, nil
	}}
	for i, step := range []struct {
		name, to string
		answered bool
		end      func(net.Conn) error
	}{
		{"name:1", "a:1", false, net.Conn.Close},
		{"name:1", "b:1", true, net.Conn.Close},
		{"another:1", "a:1", true, net.Conn.Close},
		{"name:1", "b:1", false, net.Conn.Close},
		{"name:1", "c:1", true, dial.Unserved},
		{"name:1", "a:1", true, dial.Unserved},
		{"name:1", "b:1", true, net.Conn.Close},
	} {
		c, err := d.Dial(t.Context(), "tcp", step.name)
		if err == nil && step.answered {
			_, err = c.Read(make([]byte, 1))
		}
		if err := cmp.Or(err, step.end(c)); err != nil || dialed != step.to {
			t.Errorf("dial %d of %s led to %s, not %s: %v", i, step.name, dialed, step.to, err)
		}
	}
	d.Lookup = anyOf("d", "b")
	if c, err := d.Dial(t.Context(), "tcp", "name:1"); err != nil || dialed != "d:1" || c.Close() != nil {
		t.Errorf("a name that has lost the address led to %s: %v", dialed, err)
	}
}

// Otherwise each dial would wait for the other addresses first, for as long as they are lost.
func TestAnAddressThatServesAgainComesFirstAgain(t *testing.T) {
	t.Parallel()
	var dialed []string
	d := &dial.Dialer{Lookup: anyOf("good", "lost"), Connect: func(_ context.Context, _, addr string) (net.Conn, error) {
		if dialed = append(dialed, addr); addr == "lost:1" {
			return nil, errors.New("lost")
		}
		ours, theirs := net.Pipe()
		go func() { _, _ = theirs.Write([]byte("!")) }() // until the other side is closed
		return ours, nil
	}}
	for _, answered := range []bool{false, true, true} {
		c, err := d.Dial(t.Context(), "tcp", "name:1")
		if err == nil && answered {
			_, err = c.Read(make([]byte, 1))
		}
		if err := cmp.Or(err, c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"good:1", "lost:1", "good:1", "good:1"}; !slices.Equal(dialed, want) {
		t.Errorf("dialed %v, want %v", dialed, want)
	}
}
