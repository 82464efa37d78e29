package cli

// A rehearsal plays a script of what a clock does to a generator, in virtual time, and says what each call got. This file
// reads the script, rehearse_play.go plays it, rehearse_strip.go draws it, and rehearse.go is the command.

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// A clockScript is what the clock does, in order.
type clockScript []clockAct

// A clockAct is one command of a script.
type clockAct struct {
	Verb  string        // run, back, forward, stop or drift
	For   time.Duration // run, stop: how long it lasts; back, forward: how far the clock steps
	Drift float64       // drift: in percent
}

// lasts returns how long the act takes.
func (a clockAct) lasts() time.Duration {
	if a.Verb == "run" || a.Verb == "stop" {
		return a.For
	}
	return 0
}

// String returns the act as [parseScript] reads it.
func (a clockAct) String() string {
	if a.Verb == "drift" {
		return "drift " + strconv.FormatFloat(a.Drift, 'g', -1, 64) + "%"
	}
	return a.Verb + " " + brief(a.For)
}

// brief writes a duration without the zeros of [time.Duration.String], 1h instead of 1h0m0s, and to four digits
// of a second.
func brief(d time.Duration) string {
	if d > time.Millisecond {
		d = d.Round(100 * time.Microsecond)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// lasts returns how long the script takes.
func (s clockScript) lasts() (d time.Duration) {
	for _, a := range s {
		d += a.lasts()
	}
	return d
}

const (
	grammar = "run D, stop D, back D, forward D and drift P% are allowed, with commas between them, as in run 2s, back 1h, run 3s"
	maxFor  = 87600 * time.Hour
	maxActs = 1000
	// maxDrift is that of a clock that runs three times as fast; at -100 it stands still.
	maxDrift = 200
)

// parseScript reads a script, as the help of firn rehearse describes it. Errors match [firn.ErrSyntax] and name the word and
// its position.
func parseScript(text string) (clockScript, error) {
	var s clockScript
	at := 0 // bytes before the part
	for part := range strings.SplitSeq(text, ",") {
		verb, value, valueAt := scriptWords(part)
		wrong := func(word string, offset int, why string) error {
			return firn.NewSyntaxError("script", text, fmt.Sprintf("%q at character %d: %s", word, 1+len([]rune(text[:at+offset])), why))
		}
		verbAt := strings.Index(part, verb)
		switch verb {
		case "run", "stop", "back", "forward", "drift":
		case "":
			return nil, wrong("", 0, "a command is missing: "+grammar)
		default:
			return nil, wrong(verb, verbAt, grammar)
		}
		act, err := parseAct(verb, value)
		if err != "" {
			return nil, wrong(value, valueAt, err)
		}
		if s = append(s, act); len(s) > maxActs {
			return nil, wrong(verb, verbAt, fmt.Sprintf("a script has at most %d commands", maxActs))
		}
		at += len(part) + 1
	}
	if s.lasts() <= 0 {
		return nil, firn.NewSyntaxError("script", text, "it takes no time, so that no call is made: add run D, such as run 2s")
	}
	return s, nil
}

// scriptWords splits a part into its first word and the rest, and says where that begins.
func scriptWords(part string) (verb, value string, at int) {
	trimmed := strings.TrimSpace(part)
	verb, rest, _ := strings.Cut(trimmed, " ")
	value = strings.TrimSpace(rest)
	return verb, value, len(part) - len(strings.TrimLeft(part, " \t\r\n")) + len(trimmed) - len(value)
}

// parseAct reads the value of a command; why says what is wrong.
func parseAct(verb, value string) (a clockAct, why string) {
	if verb == "drift" {
		number, percent := strings.CutSuffix(value, "%")
		drift, err := strconv.ParseFloat(number, 64)
		if !percent || err != nil || !(drift >= -100 && drift <= maxDrift) { // NaN too
			return a, fmt.Sprintf("drift takes a percentage from -100%% to %d%%, such as drift 0.5%%", maxDrift)
		}
		return clockAct{Verb: verb, Drift: drift}, ""
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 || d > maxFor {
		return a, fmt.Sprintf("%s takes a duration from 1ns to %v, such as %s 2s", verb, maxFor, verb)
	}
	return clockAct{Verb: verb, For: d}, ""
}
