package server

import (
	"net/netip"
	"testing"
)

func TestOneAddressLeavesPlacesToOthers(t *testing.T) {
	c := &crowd{of: map[netip.Addr]int{}}
	here, there := network("10.0.0.1:5"), network("[::ffff:10.0.0.2]:5")
	for i := range 8 {
		if c.enter(here, 8) != (i < 6) {
			t.Errorf("place %d of one address", i)
		}
	}
	for i := range 3 {
		if c.enter(there, 8) != (i < 2) {
			t.Errorf("place %d of another", i)
		}
	}
	for range 6 {
		c.leave(here)
	}
	for range 2 {
		c.leave(there)
	}
	if c.all != 0 || len(c.of) != 0 {
		t.Errorf("%+v", c)
	}
	for a, b := range map[string]string{"10.0.0.2:1": "[::ffff:10.0.0.2]:9", "[2001:db8::1]:1": "[2001:db8::ffff]:2", "": "nonsense"} {
		if network(a) != network(b) {
			t.Errorf("%s is not %s", a, b)
		}
	}
	if network("[2001:db8::1]:1") == network("[2001:db8:0:1::1]:1") {
		t.Error("two networks")
	}
}
