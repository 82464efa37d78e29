package outage_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/outage"
)

func TestAnOutageIsLoggedOnceForEachReason(t *testing.T) {
	var o outage.Outage
	if o.Ends() {
		t.Error("nothing has failed")
	}
	for i, c := range []struct {
		at   time.Duration
		err  string
		want bool
	}{
		{time.Second, "dial 127.0.0.1:6379: refused", true},
		{2 * time.Second, "dial 127.0.0.1:6380: refused", false},
		{3 * time.Second, "1 of 2 replicas have it", false}, // soon after the first line
		{11 * time.Second, "1 of 2 replicas have it", true},
		{100 * time.Second, "0 of 2 replicas have it", false},
		{101 * time.Second, "dial 127.0.0.1:6380: refused", true},
		{111 * time.Second, "", true},
		{131 * time.Second, "17", false},
	} {
		if got := o.Fails(errors.New(c.err), c.at); got != c.want {
			t.Errorf("%d: %q at %v is logged: %v, want %v", i, c.err, c.at, got, c.want)
		}
	}
	if !o.Ends() || o.Ends() {
		t.Error("the outage ends once")
	}
	if !o.Fails(errors.New("17"), 132*time.Second) {
		t.Error("the first failure after a success is not logged")
	}
}
