package share_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/share"
)

func limits(connections, percent int) share.Limits {
	return share.Limits{HTTP: connections, Redis: connections, Requests: connections, Percent: percent}
}

func TestOneAddressGetsItsShareAndOthersTheRest(t *testing.T) {
	s := share.New(limits(8, 75))
	here, there := s.Client("10.0.0.1:5"), s.Client("[::ffff:10.0.0.2]:5")
	for i := range 8 {
		if got := here.Take(share.Requests, 1); got != (i < 6) {
			t.Errorf("place %d of one address: %v", i, got)
		}
	}
	for i := range 3 {
		if got := there.Take(share.Requests, 1); got != (i < 2) {
			t.Errorf("place %d of another: %v", i, got)
		}
	}
	if !here.Full(share.Requests) || there.Full(share.Requests) {
		t.Error("the first has its share, and the other has not")
	}
	f := here.Refusal(share.Requests)
	if f.Status != 503 || f.Code != "overloaded" || f.Retry <= 0 || !strings.Contains(f.Message, "one address may have 6, all clients 8 (limits.share") {
		t.Errorf("%+v", f)
	}
	here.Give(share.Requests, 6)
	if n := s.Used(share.Requests); n != 2 {
		t.Errorf("%d are taken", n)
	}
	if !there.Take(share.Requests, 4) || there.Take(share.Requests, 1) {
		t.Error("what the first gave back is not for others")
	}
	s.Limit(limits(100, 10))
	if !here.Take(share.Requests, 10) || here.Take(share.Requests, 1) {
		t.Error("new limits are not in force")
	}
	if all, each := share.New(limits(2, 25)).Of(share.Requests); all != 2 || each != 1 {
		t.Errorf("of %d one address has %d", all, each)
	}
}

// A customer of a provider has a /56 or a /48, each of 256 or 65,536 networks, at no cost.
func TestAnIPv6NetworkOf48BitsHasThreeShares(t *testing.T) {
	s := share.New(limits(10, 20))
	at := func(i int) *share.Client { return s.Client(fmt.Sprintf("[2001:db8:0:%x::1]:1", i)) }
	for i := range 5 {
		c := at(i)
		for n := range 3 {
			if got := c.Take(share.Requests, 1); got != (i < 3 && n < 2) {
				t.Errorf("network %d has its request %d: %v", i, n, got)
			}
		}
		if !c.Full(share.Requests) {
			t.Errorf("network %d is not full", i)
		}
		if got := c.TryIDs(share.MaxIDs); got != (i < 3) {
			t.Errorf("network %d has room for ids: %v", i, got)
		}
		c.Leave()
	}
	for i := range 5000 { // many others come and go
		s.Client(fmt.Sprintf("10.1.%d.%d:1", i/250, i%250)).Leave()
	}
	if at(9).Take(share.Requests, 1) {
		t.Error("the /48 is forgotten")
	}
	if other := s.Client("[2001:db8:1::1]:1"); !other.Take(share.Requests, 2) || !other.TryIDs(1) {
		t.Error("nothing is left for others")
	}
	at(0).Give(share.Requests, 2)
	at(1).GiveIDs(share.MaxIDs)
	if c := at(7); !c.Take(share.Requests, 2) || !c.TryIDs(1) || !c.WaitForIDs(t.Context(), 1) {
		t.Error("what one network gave back is not for the next")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if at(8).WaitForIDs(ended, share.MaxIDs) {
		t.Error("the /48 has more room than its own")
	}
}

func TestAnAddressIsAHostOrAnIPv6Network(t *testing.T) {
	s := share.New(limits(10, 100))
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"10.0.0.2:1", "10.0.0.2:9", true},
		{"10.0.0.2:1", "[::ffff:10.0.0.2]:9", true},
		{"10.0.0.2:1", "10.0.0.3:1", false},
		{"[2001:db8::1]:1", "[2001:db8::ffff]:2", true},
		{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		{"[fe80::1%eth0]:1", "[fe80::2%eth1]:2", true},
		{"[x]:1", "", true},
	} {
		if same := s.Client(c.a) == s.Client(c.b); same != c.same {
			t.Errorf("%s and %s are one client: %v", c.a, c.b, same)
		}
	}
	if s.Client("shop:1") == s.Token("shop") {
		t.Error("a token is an address")
	}
}

// A client that closes its connection while its request is under way must not have a fresh share with the next.
func TestAClientKeepsWhatItHasWhenItsConnectionEnds(t *testing.T) {
	s := share.New(limits(100_000, 1))
	c := s.Client("10.0.0.1:1")
	if !c.Take(share.Streams, 10) || !s.Client("10.0.0.2:1").Take(share.Names, 1) {
		t.Fatal("no room")
	}
	c.Leave()
	for i := range 5000 { // many others come and go
		s.Client(fmt.Sprintf("10.1.%d.%d:1", i/250, i%250)).Leave()
	}
	if s.Client("10.0.0.1:2") != c {
		t.Error("it is forgotten")
	}
	c.Leave()
	c.Give(share.Streams, 10)
	gone := c
	for i := range 5000 {
		s.Client(fmt.Sprintf("10.2.%d.%d:1", i/250, i%250)).Leave()
	}
	if s.Client("10.0.0.1:3") == gone {
		t.Error("a client without anything is kept for ever")
	}
}

func TestOneAddressWaitsForRoomForIDsAndOthersDoNot(t *testing.T) {
	s := share.New(limits(10, 25))
	c := s.Client("10.0.0.1:1")
	if !c.TryIDs(share.MaxIDs) { // an answer above the share takes all of it
		t.Fatal("no room")
	}
	if c.TryIDs(1) {
		t.Error("more than its share")
	}
	if !s.Client("10.0.0.2:1").TryIDs(share.MaxIDs / 4) {
		t.Error("another address has none")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c.WaitForIDs(ctx, 1) {
		t.Error("it got room after its context ended")
	}
	c.GiveIDs(share.MaxIDs)
	if !c.WaitForIDs(t.Context(), 1) {
		t.Error("no room after all is given back")
	}
}

func TestARequestHasTheClientOfItsConnection(t *testing.T) {
	s := share.New(limits(10, 25))
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:1"
	c, leave := s.OfRequest(r)
	if c != s.Client("10.0.0.1:2") {
		t.Error("another client than that of its address")
	}
	leave()
	other := s.Client("10.0.0.9:1")
	if c, _ := s.OfRequest(r.WithContext(share.With(t.Context(), other))); c != other {
		t.Error("another client than that of its connection")
	}
	var none *share.Client
	if !none.Take(share.Memory, 1<<40) || !none.TryIDs(1<<40) || !none.WaitForIDs(t.Context(), 1<<40) {
		t.Error("a caller inside the process is limited")
	}
	none.Give(share.Memory, 1)
	none.GiveIDs(1)
	none.Leave()
}
