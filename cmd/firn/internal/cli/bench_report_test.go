package cli

import "testing"

func TestTheTimeOfAnIDHasAUnitThatPeopleRead(t *testing.T) {
	for ns, want := range map[float64]string{
		0.4: "0.4 ns", 45.04: "45 ns", 884570.3: "885 µs", 1213000: "1.21 ms", 999.9: "1 µs", 2.5e9: "2.5 s", 5e12: "5000 s", 0: "0 ns",
	} {
		if got := eachTook(ns); got != want {
			t.Errorf("%v: %s, want %s", ns, got, want)
		}
	}
}
