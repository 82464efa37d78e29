package config_test

import (
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
)

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{config.Check("step", 1, 1, 3, "a reason"), ""},
		{config.Check("step", 3, 1, 3, ""), ""},
		{config.Check("step", 0, 1, 3, ""), "step 0 is out of range: 1 to 3 are allowed"},
		{config.Check("id", firn.ID(4), 1, 3, "a reason"), "id 4 is out of range: 1 to 3 are allowed (a reason)"},
		{config.Check("look", time.Minute, 0, time.Second, ""), "look 1m0s is out of range: 0s to 1s are allowed"},
		{config.Check("ahead", math.NaN(), 0, 1, ""), "ahead NaN is out of range: 0 to 1 are allowed"},
	} {
		if test.want == "" && test.err == nil {
			continue
		}
		if test.err == nil || test.err.Error() != test.want || !errors.Is(test.err, firn.ErrRange) {
			t.Errorf("%v, want %q", test.err, test.want)
		}
	}
}

func TestInNamesTheField(t *testing.T) {
	var outside *firn.RangeError
	if err := config.In("MinStep", config.Check("least step", 0, 1, 3, "")); !errors.As(err, &outside) || outside.Field != "MinStep" {
		t.Errorf("%#v", err)
	}
	var syntax *firn.SyntaxError
	if err := config.In("Zone", firn.NewSyntaxError("zone", "x", "no")); !errors.As(err, &syntax) || syntax.Field != "Zone" {
		t.Errorf("%#v", err)
	}
	if err := config.In("Zone", nil); err != nil {
		t.Error(err)
	}
}

type settings struct {
	Step int
	Part struct{ Step, Zone int }
}

func TestOfNamesThePackageAndTheFieldOnce(t *testing.T) {
	const want = "p: Config.Step: step 0 is out of range: 1 to 3 are allowed\n" +
		"p: Config.Part.Zone: \"x\" is not a valid zone: no\np: Config.Store is required\nplain"
	err := config.Of[settings]("p", errors.Join(
		errors.Join(config.In("Step", config.Check("step", 0, 1, 3, "")), config.In("Zone", firn.NewSyntaxError("zone", "x", "no"))),
		config.Mistake("p", "Store", "is required"), errors.New("plain")))
	if err == nil || err.Error() != want || !errors.Is(err, firn.ErrRange) || !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("%v\nwant %s", err, want)
	}
	if err := config.Of[settings]("p", nil); err != nil {
		t.Error(err)
	}
}

func TestFill(t *testing.T) {
	var clock firn.TimeSource
	var random func() uint64
	var log *slog.Logger
	config.Fill(&clock, &random, &log)
	if clock != firn.SystemTime() || random == nil || log == nil {
		t.Error("not all is set")
	}
	log.Error("discarded")
	set, drawn, own := struct{ firn.TimeSource }{clock}, func() uint64 { return 7 }, slog.New(slog.DiscardHandler)
	clock, random, log = set, drawn, own
	config.Fill(&clock, &random, &log)
	if clock != set || random() != 7 || log != own {
		t.Error("what was set is replaced")
	}
}

func TestANilPointerIsNoValue(t *testing.T) {
	for want, value := range map[string]any{
		"pkg: Config.Store is required": nil,
		"pkg: Config.Store is a nil *slog.Logger: look at the error of the call that returned it": (*slog.Logger)(nil),
		"pkg: Config.Store is a nil func(): look at the error of the call that returned it":       (func())(nil),
		"": slog.Default(),
	} {
		if err := config.Required("pkg", "Store", value); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
		want = strings.Replace(want, "Config.Store", "the store", 1)
		if err := config.RequiredArgument("pkg", "the store", value); (err == nil) != (want == "") || err != nil && (err.Error() != want || !errors.Is(err, firn.ErrSyntax)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
