package firn_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// An error names the value and what is allowed.
func TestAChainIsParsedOrRefusedWithTheReason(t *testing.T) {
	const (
		known = "wait [LIMIT [TRIES]], history [TICKS [LIMIT]], ahead TICKS, switch and refuse are allowed"
		tries = "is not a valid rollback policy: TRIES is a number from 1 to 1000, such as wait 500ms 2"
		ticks = "is not a valid rollback policy: TICKS is a number from 1 to 1048576, such as history 2000"
	)
	for _, c := range []struct{ text, chain, wrong string }{
		{"", "", ""},
		{" \t", "", ""},
		{" wait  2s , refuse ", "wait 2s 2, refuse", ""},
		{"wait 1h 1000", "wait 1h0m0s 1000", ""},
		{"wait 1ns 1", "wait 1ns 1", ""},
		{"wait 0s", "", "wait 0s is out of range: 1ns to 1h are allowed (rollback policy wait 0s 2)"},
		{"wait 1h0m0.000000001s 1", "", "wait 1h0m0.000000001s is out of range: 1ns to 1h are allowed (rollback policy wait 1h0m0.000000001s 1)"},
		{"wait 1s 0", "", "wait tries 0 is out of range: 1 to 1000 are allowed (rollback policy wait 1s 0)"},
		{"wait 1s 1001", "", `"wait 1s 1001" ` + tries},
		{"wait 1s x", "", `"wait 1s x" ` + tries},
		{"wait x", "", `"wait x" is not a valid rollback policy: LIMIT is a duration, such as wait 500ms`},
		{"wait 1s 1 1", "", `"wait 1s 1 1" is not a valid rollback policy: wait takes at most 2 settings; ` + known},
		{"history 1", "history 1 500ms", ""},
		{"history 1 0s", "history 1 0s", ""},
		{"history 1 1h", "history 1 1h0m0s", ""},
		{"history 1 1h1ns", "", "history limit 1h0m0.000000001s is out of range: 0s to 1h are allowed (rollback policy history 1 1h0m0.000000001s)"},
		{"history 1 -1ns", "", "history limit -1ns is out of range: 0s to 1h are allowed (rollback policy history 1 -1ns)"},
		{"history 1048576", "history 1048576 500ms", ""},
		{"history 0", "", "history ticks 0 is out of range: 1 to 1048576 are allowed (rollback policy history 0 500ms)"},
		{"history 1048577", "", `"history 1048577" ` + ticks},
		{"history x", "", `"history x" ` + ticks},
		{"history 1 1", "", `"history 1 1" is not a valid rollback policy: LIMIT is a duration, such as history 2000 500ms`},
		{"history 1 1s 1", "", `"history 1 1s 1" is not a valid rollback policy: history takes at most 2 settings; ` + known},
		{"ahead 1", "ahead 1", ""},
		{"ahead 9223372036854775807", "ahead 9223372036854775807", ""},
		{"ahead 0", "", "ahead ticks 0 is out of range: 1 to 9223372036854775807 are allowed (rollback policy ahead 0)"},
		{"ahead", "", `"ahead" is not a valid rollback policy: TICKS is missing: write a number, such as ahead 1000`},
		{"ahead x", "", `"ahead x" is not a valid rollback policy: TICKS is a number, such as ahead 1000`},
		{"ahead 1 1", "", `"ahead 1 1" is not a valid rollback policy: ahead takes at most 1 settings; ` + known},
		{"switch 1", "", `"switch 1" is not a valid rollback policy: switch takes at most 0 settings; ` + known},
		{"refuse 1", "", `"refuse 1" is not a valid rollback policy: refuse takes at most 0 settings; ` + known},
		{"fly", "", `"fly" is not a valid rollback policy: ` + known},
		{"wait,", "", `"" is not a valid rollback policy: ` + known},
		{"refuse, wait", "", `"refuse, wait 500ms 2" is not a valid rollback chain: refuse ends a chain: later policies are never tried`},
		{"wait, refuse, wait 1s", "", `"wait 500ms 2, refuse, wait 1s 2" is not a valid rollback chain: refuse ends a chain: later policies are never tried` +
			"\n" + `"wait 500ms 2, refuse, wait 1s 2" is not a valid rollback chain: a chain may have each policy once`},
		{"fly, wait 0s, swim", "", `"fly" is not a valid rollback policy: ` + known + "\n" + `"swim" is not a valid rollback policy: ` + known +
			"\nwait 0s is out of range: 1ns to 1h are allowed (rollback policy wait 0s 2)"},
	} {
		chain, err := firn.ParseRollback(c.text)
		if wrong := fmt.Sprint(err); chain.String() != c.chain || (err != nil) != (c.wrong != "") || err != nil && wrong != c.wrong {
			t.Errorf("%q: %q, %v\nnot %q, %s", c.text, chain, err, c.chain, c.wrong)
		}
		if err != nil && (chain != nil || !errors.Is(err, firn.ErrSyntax) && !errors.Is(err, firn.ErrRange)) {
			t.Errorf("%q: %v with the error %v", c.text, chain, err)
		}
	}
}

func TestAChainMadeOfPoliciesIsCheckedAsWell(t *testing.T) {
	for _, c := range []struct {
		policy firn.Policy
		wrong  string
	}{
		{firn.Wait(time.Hour, 1000), ""},
		{firn.Wait(time.Hour, 1001), "wait tries 1001 is out of range: 1 to 1000 are allowed (rollback policy wait 1h0m0s 1001)"},
		{firn.History(1<<20, time.Hour), ""},
		{firn.History(1<<20+1, 0), "history ticks 1048577 is out of range: 1 to 1048576 are allowed (rollback policy history 1048577 0s)"},
		{firn.RunAhead(1), ""},
		{firn.Refuse(), ""},
		{firn.Policy{}, `"" is not a valid rollback policy: make one with Refuse, Wait, History, RunAhead or SwitchWorker`},
	} {
		_, err := firn.New(0, firn.Config{Clock: firn.ClockWall, Rollback: firn.Rollback{c.policy}, Time: newClock()})
		if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%v: %v, not %s", c.policy, err, c.wrong)
		}
	}
	if text := (firn.Policy{}).String(); text != "none" {
		t.Errorf("the zero policy is printed as %q", text)
	}
}

func TestATickCountBelowOneIsOneMistake(t *testing.T) {
	const want = "ahead ticks -5 is out of range: 1 to 9223372036854775807 are allowed (rollback policy ahead -5)"
	if _, err := firn.New(0, firn.Config{Clock: firn.ClockWall, Rollback: firn.Rollback{firn.RunAhead(-5)}}); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestAChainSaysForHowLongACallMayWait(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "refuse": 0, "ahead 5, switch": 0, "wait 500ms 3": 1500 * time.Millisecond, "history 10 2s": 2 * time.Second,
		"wait 1h 1000, history 10 1h": 1001 * time.Hour,
	} {
		chain, err := firn.ParseRollback(text)
		if err != nil || chain.Waits() != want {
			t.Errorf("%s: %v, want %v (%v)", text, chain.Waits(), want, err)
		}
	}
}
