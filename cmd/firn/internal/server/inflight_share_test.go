package server

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"testing"
)

func TestOneAddressGetsThreeQuartersOfThePlaces(t *testing.T) {
	c := newInFlight()
	here, there := "10.0.0.1:5", "[::ffff:10.0.0.2]:5"
	for i := 3; maphash.String(c.seed, clientNetwork(here))%stripes == maphash.String(c.seed, clientNetwork(there))%stripes; i++ {
		there = fmt.Sprintf("10.0.0.%d:5", i) // an address that does not share a counter with the other
	}
	var places []*atomic.Int64
	for i := range 8 {
		place, ok := c.enter(here, 8)
		if ok != (i < 6) {
			t.Errorf("place %d of one address", i)
		}
		places = append(places, place)
	}
	for i := range 3 {
		place, ok := c.enter(there, 8)
		if ok != (i < 2) {
			t.Errorf("place %d of another", i)
		}
		places = append(places, place)
	}
	for _, place := range places {
		if place != nil {
			c.leave(place)
		}
	}
	left := c.all.Load()
	for i := range c.of {
		left += c.of[i].Load()
	}
	if left != 0 {
		t.Errorf("%d are left", left)
	}
	for a, b := range map[string]string{"10.0.0.2:1": "[::ffff:10.0.0.2]:9", "[2001:db8::1]:1": "[2001:db8::ffff]:2", "[x]:1": ""} {
		if clientNetwork(a) != clientNetwork(b) {
			t.Errorf("%s is not %s", a, b)
		}
	}
	if clientNetwork("[2001:db8::1]:1") == clientNetwork("[2001:db8:0:1::1]:1") {
		t.Error("two networks")
	}
}
