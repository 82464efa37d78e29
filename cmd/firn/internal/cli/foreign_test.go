package cli

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store"
)

// evil clears the screen, sets the title, writes to the left, and begins a line that looks like one of firn.
const evil = "\x1b[2J\x1b]0;pwned\aevil\u202e\n999  free\x9b\u009b"

func TestTextOfOthersControlsNoTerminal(t *testing.T) {
	var workers, report, waits strings.Builder
	slots := []issuing.Slot{{Host: evil, PID: 1, State: issuing.SlotHeld}, {Owner: evil, State: issuing.SlotHeld}}
	if err := showSlots(&workers, true, issuing.Pool{Pool: "default", Layout: "41/0/10/12", Slots: slots, Clock: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := showReport(&report, true, doctorReport{"memory:", issuing.ShowFindings([]store.Finding{{Subject: "server", Says: evil, Advice: evil}})}); err != nil {
		t.Fatal(err)
	}
	slog.New(&notices{out: &waits}).Warn("the slot is held", "host", evil)
	colours := regexp.MustCompile("\x1b\\[(2|3[1-6]|0)m")
	if !colours.MatchString(workers.String()) || !colours.MatchString(report.String()) {
		t.Error("there are no colours")
	}
	for what, text := range map[string]string{
		"workers": colours.ReplaceAllString(workers.String(), ""), "doctor": colours.ReplaceAllString(report.String(), ""),
		"a log line": waits.String(), "an error": plainLines("a\nb: " + evil),
	} {
		if strings.ContainsAny(text, "\x1b\a\u202e\u009b") || !strings.Contains(text, `\x1b[2J\x1b]0;pwned\aevil\u202e`) {
			t.Errorf("%s: %q", what, text)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "999") && what != "an error" {
				t.Errorf("%s has a line of others: %q", what, line)
			}
		}
	}
}

func TestPlainTextStays(t *testing.T) {
	for _, text := range []string{"", "ordinary, with 数字 and →", "two\nlines"} {
		if got := plainLines(text); got != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
}
