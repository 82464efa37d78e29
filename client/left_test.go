package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/client"
)

// A detour sends requests for some paths elsewhere.
type detour struct {
	network
	paths map[string]func(*http.Request)
}

func (d detour) RoundTrip(r *http.Request) (*http.Response, error) {
	for part, first := range d.paths {
		if strings.Contains(r.URL.Path, part) {
			first(r)
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return d.network.RoundTrip(r)
}

// A server is left because one request hangs, and answers an earlier request before it is
// probed: while the hook for leaving it still runs, and while the probe hangs.
func TestAServerThatAnswersAfterItWasLeftIsProbedAndItsErrorReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(r *http.Request) { <-r.Context().Done() }
		n := network{"a": {kind: "sequence", next: 1}}
		cfg := n.config()
		cfg.Timeout, cfg.Wait = 500*time.Millisecond, 900*time.Millisecond
		cfg.HTTP = &http.Client{Transport: detour{n, map[string]func(*http.Request){
			"/ids/slow": hangs,
			"/ids/fast": func(*http.Request) { time.Sleep(350 * time.Millisecond) },
			"/readyz":   hangs,
		}}}
		cfg.Hooks.Server = func(_ string, err error) {
			if err != nil {
				time.Sleep(200 * time.Millisecond)
			}
		}
		c := newClient(t, cfg)
		slow, fast := ids(t, c, "slow"), ids(t, c, "fast")
		answered := make(chan error, 1)
		go func() {
			time.Sleep(300 * time.Millisecond)
			_, err := fetchOne(t.Context(), fast)
			answered <- err
		}()
		_, err := fetchOne(t.Context(), slow)
		if !errors.Is(err, client.ErrUnavailable) || !strings.Contains(err.Error(), "no answer within 500ms") {
			t.Errorf("%v", err)
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if s := c.State().Servers[0]; s.Up || s.Err == nil {
			t.Errorf("%+v", s)
		}
	})
}
