package respapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/respapi"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

func TestCommandsSentBeforeTheShutdownAreAnswered(t *testing.T) {
	s, _, address := serve(t, kinds)
	idle, half := dial(t, address), dial(t, address)
	idle.ask("PING")
	half.ask("PING")
	half.send("*2\r\n$4\r\nINCR\r\n")
	const clients, each = 20, 500
	busy := make([]*client, clients)
	for i := range busy {
		busy[i] = dial(t, address)
		busy[i].ask("PING")
		busy[i].send(strings.Repeat(fmt.Sprintf(incr, 5, "items"), each)) // it is on this machine, so it has arrived
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	seen := map[int64]bool{}
	for _, c := range busy {
		for range each {
			seen[c.number()] = true
		}
		c.ended()
	}
	if len(seen) != clients*each {
		t.Errorf("%d ids, want %d", len(seen), clients*each)
	}
	idle.ended()
	half.ended()
}

// A client may have sent commands for minutes of work: they must not delay the end, and take no ids that are then lost.
func TestAShutdownRefusesWhatItHasNoTimeFor(t *testing.T) {
	slow := settings.Config{Namespaces: map[string]settings.Namespace{"slow": {Pooled: settings.Pooled{Layout: "sonyflake"}}}}
	s, _, address := serve(t, slow, func(c *respapi.Config) { c.FinalAnswers = 50 * time.Millisecond })
	const commands = 500
	piped, together := dial(t, address), dial(t, address)
	piped.ask("PING")
	piped.send(strings.Repeat("FIRN.NEXT slow COUNT 1000\r\n", commands)) // 40 ms each
	together.ask("MULTI")
	together.send(strings.Repeat("FIRN.NEXT slow COUNT 200\r\n", commands) + "EXEC\r\n")
	for range commands {
		together.reply()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	for name, last := range map[string]func() string{
		"pipeline": func() (last string) {
			for range commands {
				last = piped.reply()
			}
			return last
		},
		"EXEC": together.reply,
	} {
		if got := last(); !strings.HasSuffix(strings.TrimSpace(got), "ask another server, or this one later") || !strings.Contains(got, "-TRYAGAIN shutting_down: ") {
			t.Errorf("%s: the last answer is %.200s", name, got)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	piped.ended()
	together.ended()
}

func TestAReloadLosesNoConnection(t *testing.T) {
	_, service, address := serve(t, kinds)
	c := dial(t, address)
	if got := c.ask("INCR items"); got != ":1" {
		t.Fatal(got)
	}
	changed := settings.Config{Namespaces: map[string]settings.Namespace{"items": {Kind: "segment"}, "more": {Kind: "sequence"}}}
	if err := service.Apply(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	for say, want := range map[string]string{"INCR items": ":2", "INCR more": ":1"} {
		if got := c.ask(say); got != want {
			t.Errorf("%s after the reload: %s", say, got)
		}
	}
	if got := c.ask("INCR txn"); !strings.HasPrefix(got, "-FIRN unknown_namespace: ") {
		t.Error(got)
	}
}

func TestAClosedServiceAnswersAnErrorAndNoID(t *testing.T) {
	_, service, address := serve(t, kinds)
	c := dial(t, address)
	c.ask("INCR items")
	if err := service.Close(); err != nil {
		t.Fatal(err)
	}
	for _, say := range []string{"INCR items", "INCR orders", "INCRBY txn 5", "FIRN.NEXT orders COUNT 3"} {
		if got := c.ask(say); !strings.HasPrefix(got, "-TRYAGAIN shutting_down: ") {
			t.Errorf("%s: %s", say, got)
		}
	}
	c.send(strings.Repeat("INCR items\r\n", 3) + strings.Repeat(fmt.Sprintf(incr, 5, "items"), 3))
	for range 6 {
		if got := c.line(); !strings.HasPrefix(got, "-TRYAGAIN shutting_down: ") {
			t.Errorf("%s", got)
		}
	}
}

func TestCloseCutsConnectionsOff(t *testing.T) {
	s, _, address := serve(t, kinds)
	c := dial(t, address)
	c.ask("PING")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.lines.ReadByte(); err == nil || !errors.Is(err, io.EOF) && isTimeout(err) {
		t.Errorf("after Close: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
