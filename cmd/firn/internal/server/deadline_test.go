package server_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/server"
)

const (
	header = 5 * time.Second
	whole  = 10 * time.Second
	idle   = 2 * time.Minute
)

// aborts is what net/http sets to end a read.
var aborts = time.Unix(1, 0)

// A countingConn counts the deadlines that are set.
type countingConn struct {
	net.Conn
	reads, writes int
}

func (c *countingConn) SetReadDeadline(t time.Time) error {
	c.reads++
	return c.Conn.SetReadDeadline(t)
}

func (c *countingConn) SetWriteDeadline(t time.Time) error {
	c.writes++
	return c.Conn.SetWriteDeadline(t)
}

// patient runs a test with both ends of a connection, with a clock of its own.
func patient(t *testing.T, do func(t *testing.T, conn net.Conn, inner *countingConn, peer net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ours, peer := net.Pipe()
		inner := &countingConn{Conn: ours}
		do(t, server.NewPatientConn(inner, header), inner, peer)
		if err := errors.Join(ours.Close(), peer.Close()); err != nil {
			t.Error(err)
		}
	})
}

// endsAfter checks when a read ends by its deadline.
func endsAfter(t *testing.T, conn net.Conn, want time.Duration) {
	t.Helper()
	began := time.Now()
	n, err := conn.Read(make([]byte, 1))
	if took := time.Since(began); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || took != want {
		t.Errorf("the read ended after %v with %v, want %v", took, err, want)
	}
}

func set(t *testing.T, deadline func(time.Time) error, at time.Time) {
	t.Helper()
	if err := deadline(at); err != nil {
		t.Fatal(err)
	}
}

func TestAReadEndsAtTheLastDeadlineThatWasSet(t *testing.T) {
	for _, test := range []struct {
		name string
		set  []time.Duration
		want time.Duration
	}{
		{"one", []time.Duration{header}, header},
		{"a later one", []time.Duration{header, whole}, whole},
		{"an earlier one", []time.Duration{idle, header}, header},
		{"after an abort", []time.Duration{header, -1, 0, idle}, idle},
		{"after an abort that was not cleared", []time.Duration{header, -1, whole}, whole},
		{"a new one after none", []time.Duration{header, 0, idle}, idle},
		{"an abort", []time.Duration{header, -1}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			patient(t, func(t *testing.T, conn net.Conn, _ *countingConn, _ net.Conn) {
				for _, after := range test.set {
					at := time.Now().Add(after)
					switch after {
					case 0:
						at = time.Time{}
					case -1:
						at = aborts
					}
					set(t, conn.SetReadDeadline, at)
				}
				endsAfter(t, conn, test.want)
				endsAfter(t, conn, 0)
			})
		})
	}
}

func TestABlockedReadFollowsItsDeadline(t *testing.T) {
	patient(t, func(t *testing.T, conn net.Conn, _ *countingConn, peer net.Conn) {
		set(t, conn.SetReadDeadline, time.Now().Add(header))
		ended := make(chan error)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		set(t, conn.SetReadDeadline, time.Time{})
		time.Sleep(whole)
		set(t, conn.SetReadDeadline, aborts)
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		set(t, conn.SetReadDeadline, time.Time{})
		go func() {
			time.Sleep(idle)
			_, err := peer.Write([]byte("x"))
			ended <- err
		}()
		if n, err := conn.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Error(n, err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The deadline of an earlier answer passes while a later one is written.
func TestAWriteThatGoesOnLosesNothing(t *testing.T) {
	patient(t, func(t *testing.T, conn net.Conn, _ *countingConn, peer net.Conn) {
		text := []byte("an answer that is read slowly")
		set(t, conn.SetWriteDeadline, time.Now().Add(header))
		set(t, conn.SetWriteDeadline, time.Now().Add(idle))
		read := make(chan []byte)
		go func() {
			half := make([]byte, len(text)/2)
			_, err := io.ReadFull(peer, half)
			time.Sleep(whole)
			rest, restErr := io.ReadAll(peer)
			if err = errors.Join(err, restErr); err != nil {
				t.Error(err)
			}
			read <- append(half, rest...)
		}()
		if n, err := conn.Write(text); n != len(text) || err != nil {
			t.Error(n, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if got := <-read; !bytes.Equal(got, text) {
			t.Errorf("%q was read", got)
		}
	})
}

func TestAWriteEndsAtItsDeadlineWithWhatItWrote(t *testing.T) {
	patient(t, func(t *testing.T, conn net.Conn, _ *countingConn, peer net.Conn) {
		set(t, conn.SetDeadline, time.Now().Add(header))
		set(t, conn.SetWriteDeadline, time.Now().Add(whole))
		read := make(chan error)
		go func() {
			_, err := io.ReadFull(peer, make([]byte, 3))
			read <- err
		}()
		began := time.Now()
		n, err := conn.Write([]byte("12345"))
		if took := time.Since(began); n != 3 || !errors.Is(err, os.ErrDeadlineExceeded) || took != whole {
			t.Errorf("%d bytes after %v, %v", n, took, err)
		}
		if err := <-read; err != nil {
			t.Error(err)
		}
	})
}

// What net/http sets for a request moves one timer, and ends the read that waits for the client to go.
func TestARequestSetsFewDeadlines(t *testing.T) {
	patient(t, func(t *testing.T, conn net.Conn, inner *countingConn, _ net.Conn) {
		request := func() {
			now := time.Now()
			set(t, conn.SetReadDeadline, now.Add(whole))
			set(t, conn.SetWriteDeadline, now.Add(idle))
			set(t, conn.SetReadDeadline, time.Time{})
			set(t, conn.SetReadDeadline, aborts)
			set(t, conn.SetReadDeadline, time.Time{})
			set(t, conn.SetWriteDeadline, time.Time{})
			set(t, conn.SetReadDeadline, now.Add(idle))
			set(t, conn.SetReadDeadline, now.Add(header))
		}
		set(t, conn.SetReadDeadline, time.Now().Add(header))
		request()
		inner.reads, inner.writes = 0, 0
		for range 10 {
			request()
		}
		if inner.reads > 20 || inner.writes > 0 {
			t.Errorf("ten requests set %d deadlines of reads and %d of writes", inner.reads, inner.writes)
		}
	})
}
