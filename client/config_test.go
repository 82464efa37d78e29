package client_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

func TestImpossibleSettingsAreRefusedAllAtOnceAndSayWhatIsAllowed(t *testing.T) {
	good := client.Config{Servers: []string{"http://a"}}
	for want, change := range map[string]func(*client.Config){
		"number of servers 0 is out of range: 1 to 64":                                               func(c *client.Config) { c.Servers = nil },
		"number of servers 65 is out of range":                                                       func(c *client.Config) { c.Servers = many(65) },
		`"127.0.0.1:7070" is not a valid server address: write http://HOST:PORT`:                     func(c *client.Config) { c.Servers = []string{"127.0.0.1:7070"} },
		`"" is not a valid server address`:                                                           func(c *client.Config) { c.Servers = []string{""} },
		`"grpc://a" is not a valid server address`:                                                   func(c *client.Config) { c.Servers = []string{"grpc://a"} },
		`"http://:80" is not a valid server address`:                                                 func(c *client.Config) { c.Servers = []string{"http://:80"} },
		`"http://a:x" is not a valid server address`:                                                 func(c *client.Config) { c.Servers = []string{"http://a:x"} },
		`"…" is not a valid server address: it has a user`:                                           func(c *client.Config) { c.Servers = []string{"http://u:geheim@a"} },
		`"…" is not a valid server address: write`:                                                   func(c *client.Config) { c.Servers = []string{"http://u:geheim@a:x"} },
		`"http://a?token=x" is not a valid server address: it has`:                                   func(c *client.Config) { c.Servers = []string{"http://a?token=x"} },
		`"http://a" is not a valid server address: it is there twice`:                                func(c *client.Config) { c.Servers = []string{"http://a", "http://a/"} },
		"client: Config.Token has characters other than":                                             func(c *client.Config) { c.Token = "geheim\n" },
		"length of the token 5000":                                                                   func(c *client.Config) { c.Token = strings.Repeat("x", 5000) },
		"client: Config.TLS is beside Config.HTTP: set only one":                                     func(c *client.Config) { c.TLS, c.HTTP = &tls.Config{}, http.DefaultClient },
		"time-out 1h0m0s is out of range: 1ms to 1m0s":                                               func(c *client.Config) { c.Timeout = time.Hour },
		"wait -1ns is out of range: 1ms to 1h0m0s":                                                   func(c *client.Config) { c.Wait = -1 },
		"most ids 1048577 is out of range: 1 to 1048576":                                             func(c *client.Config) { c.Buffer.Max = 1<<20 + 1 },
		"client: Config.Buffer.Min: least ids 11 is out of range: 1 to 10 are allowed":               func(c *client.Config) { c.Buffer = client.Buffer{Min: 11, Max: 10} },
		"least ids -1 is out of range":                                                               func(c *client.Config) { c.Buffer.Min = -1 },
		"client: Config.Buffer.Target: target 25h0m0s is out of range: 1ms to 24h0m0s are allowed":   func(c *client.Config) { c.Buffer.Target = 25 * time.Hour },
		"client: Config.Buffer.MaxAge: max age 1ns is out of range: 1ms to 2562047h0m0s are allowed": func(c *client.Config) { c.Buffer.MaxAge = 1 },
		"max age -1s is out of range":                                                                func(c *client.Config) { c.Buffer.MaxAge = -time.Second },
		`client: Config.Buffers["x"].Max: most ids -1 is out of range: 1 to 1048576 are allowed`:     func(c *client.Config) { c.Buffers = map[string]client.Buffer{"x": {Max: -1}} },
		`"a/b" is not a valid namespace name`:                                                        func(c *client.Config) { c.Buffers = map[string]client.Buffer{"a/b": {}} },
	} {
		cfg := good
		change(&cfg)
		c, err := client.New(cfg)
		if c != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, err := client.New(client.Config{Wait: -1, Timeout: -1, Servers: []string{"a", "b"}})
	if !errors.Is(err, firn.ErrRange) || !errors.Is(err, firn.ErrSyntax) || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("%v", err)
	}
	for field, cfg := range map[string]client.Config{
		"Servers": {}, "Timeout": {Servers: good.Servers, Timeout: -1}, "Buffer.Min": {Servers: good.Servers, Buffer: client.Buffer{Min: -1}},
		`Buffers["x"].MaxAge`: {Servers: good.Servers, Buffers: map[string]client.Buffer{"x": {MaxAge: 1}}},
	} {
		var outside *firn.RangeError
		_, err := client.New(cfg)
		if !errors.As(err, &outside) || outside.Field != field || !strings.HasPrefix(err.Error(), "client: Config."+field+": ") {
			t.Errorf("%#v, want the field %s: %v", outside, field, err)
		}
	}
	for _, cfg := range []client.Config{
		{Servers: []string{"http://a", "https://b:8443/firn/", "http://[::1]:7070"}},
		{Servers: []string{"http://a"}, Buffer: client.Buffer{Min: 500_000}},
		{Servers: []string{"http://a"}, Buffer: client.Buffer{Max: 1}},
	} {
		c, err := client.New(cfg)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		c.Close()
	}
}

func many(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("http://h%d", i))
	}
	return all
}

func TestNamesThatCannotBeNamespacesAreRefused(t *testing.T) {
	c := newClient(t, client.Config{Servers: []string{"http://a"}})
	for _, name := range []string{"", ".", "..", "a/b", "a?b", "ä", strings.Repeat("x", 1000)} {
		if _, err := c.IDs(name); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := c.Texts(name); !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%q: %v", name, err)
		}
	}
	first, second := ids(t, c, "orders"), ids(t, c, "orders")
	if first != second || first.String() != "orders" {
		t.Error("the same name gave two namespaces")
	}
	var err error
	for i := 0; err == nil && i < 20_000; i++ {
		_, err = c.Texts(fmt.Sprint("n", i))
	}
	if !errors.Is(err, firn.ErrRange) {
		t.Errorf("no limit on namespaces: %v", err)
	}
}

func TestTheStateTellsIDsAndTextsOfOneNameApart(t *testing.T) {
	c := newClient(t, client.Config{Servers: []string{"http://a"}})
	for _, name := range []string{"b", "a"} {
		if _, err := c.Texts(name); err != nil {
			t.Fatal(err)
		}
		ids(t, c, name)
	}
	var got []string
	for _, n := range c.State().Namespaces {
		got = append(got, fmt.Sprint(n.Namespace, " ", n.Texts))
	}
	if want := []string{"a false", "a true", "b false", "b true"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
