package firn

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var updateScripts = flag.Bool("update-scripts", false, "rewrite the answers in testdata/core")

// Each line of the scripts in testdata/core is an event. Below it are the core's decision and the
// core's state after it:
//
//	core LAYOUT clock=wall start=zero ahead=2s chain=wait 1s, history 4
//	grant WORKER AFTER THROUGH          a new lease; "replace" keeps ids in order
//	extend THROUGH
//	step NOW N                          a call for N ids at a time after the epoch
//	again NOW N                         the same call asks again
//	refused TEXT                        the switch it decided on has failed
//	used POSITION                       how far back a steady clock may be set
//
// A position is written tick.sequence.
func TestTheCoreDecidesAsTheScriptsSay(t *testing.T) {
	files, err := filepath.Glob("testdata/core/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var (
				s        script
				got      strings.Builder
				answered bool
			)
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "\t") {
					continue
				}
				got.WriteString(line)
				if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
					answer := s.play(t, words)
					got.WriteString(answer)
					answered = true
					if !*updateScripts && !strings.Contains(string(text), line+answer) {
						t.Errorf("%sthe core says\n%s", line, answer)
					}
				}
			}
			if !answered {
				t.Error("an empty script")
			}
			if *updateScripts {
				err = os.WriteFile(file, []byte(got.String()), 0o600)
			} else if got.String() != string(text) {
				err = errors.New("the answers in the script differ from the core's: see -update-scripts")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

type script struct {
	core   core
	call   attempt
	random uint64
	now    int64 // the latest reading
}

// play executes a line and returns the core's answer.
func (s *script) play(t *testing.T, words []string) string {
	t.Helper()
	c := &s.core
	number := func(i int) int64 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var answer string
	switch words[0] {
	case "core":
		s.begin(t, words[1:])
		return ""
	case "grant", "replace":
		c.reset(Grant{Worker: number(1), After: Tick(number(2)), Through: Tick(number(3))}, words[0] == "replace")
		answer = fmt.Sprintf("worker %d, last %d\n", c.worker, c.last())
	case "extend":
		c.extend(Tick(number(1)))
	case "step", "again":
		if words[0] == "step" {
			s.call = attempt{}
		}
		now, err := time.ParseDuration(words[1])
		if err != nil {
			t.Fatal(err)
		}
		s.now = c.layout.epoch + int64(now)
		answer = s.decision(c.step(s.now, uint64(number(2)), &s.call))
	case "refused":
		s.call.refusal = errors.New(strings.Join(words[1:], " "))
		return ""
	case "used":
		tick, sequence, _ := strings.Cut(words[1], ".")
		words[1] = tick
		position := uint64(number(1)) << c.layout.sequence
		words[1] = sequence
		position += uint64(number(1))
		return fmt.Sprintf("\t%s, last %d\n", s.moment(c.used(position)), c.last())
	default:
		t.Fatalf("unknown event %q", words)
	}
	return indent(answer + s.state())
}

func (s *script) begin(t *testing.T, words []string) {
	l, err := ParseLayout(words[0])
	if err != nil {
		t.Fatal(err)
	}
	*s = script{core: core{layout: l, seen: -1, clock: ClockWall, below: 3}}
	for i, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "clock":
			s.core.clock, err = ParseClock(value)
		case "start":
			s.core.start, err = ParseSequenceStart(value)
		case "random": // the core begins at a random sequence
			s.core.random = s.next
		case "ahead":
			var d time.Duration
			d, err = time.ParseDuration(value)
			s.core.ahead = int64(d)
		case "chain":
			s.core.chain, err = ParseRollback(value + " " + strings.Join(words[i+2:], " "))
			if p := s.core.chain.find(policyHistory); p.kind != 0 {
				s.core.history = newHistory(p.ticks)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if name == "chain" {
			return
		}
	}
}

// next returns predictable numbers in place of random ones: 5, 6, 7.
func (s *script) next() uint64 {
	s.random++
	return s.random + 4
}

func (s *script) decision(d decision) string {
	c := &s.core
	switch d.act {
	case actIssue:
		text := fmt.Sprintf("issues %d from %s below %s\n", d.count, s.position(d.first), s.position(d.limit))
		if d.open {
			text += fmt.Sprintf("open from %s to %s\n", s.moment(d.opens), s.moment(d.closes))
		}
		return text
	case actWait:
		if d.full {
			s.call.waited += time.Duration(d.until - s.now)
			return fmt.Sprintf("waits until %s for an unused tick\n", s.moment(d.until))
		}
		return fmt.Sprintf("waits until %s, a try: %t\n", s.moment(d.until), d.tried)
	case actSwitch:
		return fmt.Sprintf("switches, from worker %d\n", c.worker)
	default:
		return fmt.Sprintf("fails: %v\n", d.err)
	}
}

// state describes the core's state.
func (s *script) state() string {
	c := &s.core
	text := fmt.Sprintf("next %s, used below %s, allowed %s to %s", s.position(c.pos), s.position(c.high), s.position(c.floor), s.position(c.ceiling))
	text += fmt.Sprintf("; showed %d", c.seen)
	if c.seen >= 0 {
		text += " at " + s.moment(c.seenAt)
	}
	if c.behind > 0 {
		text += ", behind " + s.position(c.behind)
	}
	if c.history.kept() {
		text += fmt.Sprintf(", in tick %d", c.cur)
	}
	if c.back(c.seen) {
		text += fmt.Sprintf(", back from %d", c.peak)
	}
	if c.drift {
		text += ", ahead of the clock"
	}
	return text + "\n"
}

func (s *script) position(p uint64) string {
	l := s.core.layout
	return fmt.Sprintf("%d.%d", p>>l.sequence, p&mask(l.sequence))
}

func (s *script) moment(ns int64) string {
	switch ns {
	case math.MaxInt64:
		return "ever"
	case math.MinInt64:
		return "the beginning"
	default:
		return time.Duration(ns - s.core.layout.epoch).String()
	}
}

func indent(text string) string {
	return "\t" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n\t") + "\n"
}
