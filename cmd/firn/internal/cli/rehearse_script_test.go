package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

func TestAScriptIsReadOrRefusedWithTheWordAndItsPlace(t *testing.T) {
	for _, c := range []struct{ text, want, wrong string }{
		{"run 2s", "run 2s", ""},
		{" run 2s ,back  1h,\tforward 1h0m0s, stop 1m30s, drift -0.5% ", "run 2s, back 1h, forward 1h, stop 1m30s, drift -0.5%", ""},
		{"stop 1ns", "stop 1ns", ""},
		{"run 87600h", "run 87600h", ""},
		{"run 1s, drift -100%", "run 1s, drift -100%", ""},
		{"run 1s, drift 200%", "run 1s, drift 200%", ""},
		{"", "", `"" at character 1: a command is missing: run D, stop D`},
		{"run 1s,", "", `"" at character 8: a command is missing`},
		{"run 1s, jump 2s", "", `"jump" at character 9: run D, stop D, back D, forward D and drift P% are allowed`},
		{"run 1s, back", "", `"" at character 13: back takes a duration from 1ns to 87600h0m0s, such as back 2s`},
		{"run 1s,  back   two", "", `"two" at character 17: back takes a duration`},
		{"run 1s 2s", "", `"1s 2s" at character 5: run takes a duration`},
		{"run 0s", "", `"0s" at character 5: run takes a duration`},
		{"run 87600h1ns", "", `"87600h1ns" at character 5: run takes a duration`},
		{"run -1s", "", `"-1s" at character 5`},
		{"run 1s, drift 5", "", `"5" at character 15: drift takes a percentage from -100% to 200%, such as drift 0.5%`},
		{"run 1s, drift 200.1%", "", `"200.1%" at character 15`},
		{"run 1s, drift -100.1%", "", `"-100.1%" at character 15`},
		{"run 1s, drift NaN%", "", `"NaN%" at character 15`},
		{"zurück 1s", "", `"zurück" at character 1`},
		{"run 1µs, zurück", "", `"zurück" at character 10`},
		{"back 1h", "", "it takes no time, so that no call is made: add run D"},
		{strings.Repeat("run 1s,", 1000) + "run 1s", "", "a script has at most 1000 commands"},
	} {
		s, err := parseScript(c.text)
		parts := make([]string, len(s))
		for i, a := range s {
			parts[i] = a.String()
		}
		if got := strings.Join(parts, ", "); got != c.want || (err != nil) != (c.wrong != "") || !strings.Contains(fmt.Sprint(err), c.wrong) && c.wrong != "" {
			t.Errorf("%q: %s, %v\nwant %s, %s", c.text, got, err, c.want, c.wrong)
		}
		if err != nil && !errors.Is(err, firn.ErrSyntax) {
			t.Errorf("%q: %T", c.text, err)
		}
	}
}

func TestADurationIsWrittenWithoutTrailingZeros(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Hour: "1h", time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m", 90 * time.Minute: "1h30m", 1500 * time.Millisecond: "1.5s", 20 * time.Hour: "20h",
	} {
		if got := brief(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// What is read is written in a form that reads as the same.
func FuzzScript(f *testing.F) {
	for _, text := range []string{"run 2s, back 1h, run 3s, forward 1h, run 1s", "stop 1m, drift -100%, run 1ns", "run", ",", "drift 1e-300%,run 1s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseScript(text)
		if err != nil {
			return
		}
		parts := make([]string, len(s))
		for i, a := range s {
			parts[i] = a.String()
		}
		again, err := parseScript(strings.Join(parts, ","))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(s) {
			t.Errorf("%q: %v, and again %v, %v", text, s, again, err)
		}
	})
}
