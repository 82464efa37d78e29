package cli

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// progressAfter is how long a command runs before it shows its progress.
	progressAfter = 700 * time.Millisecond
	progressEvery = 200 * time.Millisecond
)

// A progress shows on a terminal how far a long command is. Its methods may be called concurrently. A nil progress shows
// nothing.
type progress struct {
	out        io.Writer
	does, noun string
	done, all  atomic.Int64  // all is 0 if it is unknown
	lasts      time.Duration // if not 0, how long it takes in all
	begun      time.Time
	ending     chan struct{}
	ended      sync.WaitGroup
}

// newProgress shows progress until end is called, as "does 5 of 10 noun". It returns nil unless out is a terminal.
func newProgress(out io.Writer, does, noun string, all int64, lasts time.Duration) *progress {
	if !isTerminal(out) {
		return nil
	}
	return startProgress(out, does, noun, all, lasts)
}

// startProgress shows progress also without a terminal.
func startProgress(out io.Writer, does, noun string, all int64, lasts time.Duration) *progress {
	p := &progress{out: out, does: does, noun: noun, lasts: lasts, begun: time.Now(), ending: make(chan struct{})}
	p.all.Store(all)
	p.ended.Go(p.show)
	return p
}

// add counts n more.
func (p *progress) add(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// reach sets how much of all is done.
func (p *progress) reach(done, all int) {
	if p != nil {
		p.all.Store(int64(all))
		p.done.Store(int64(done))
	}
}

// end removes the line, so that other output can follow.
func (p *progress) end() {
	if p != nil {
		close(p.ending)
		p.ended.Wait()
	}
}

// show draws the line. A failed write is no failure of the command.
func (p *progress) show() {
	next := time.NewTimer(progressAfter)
	defer next.Stop()
	const erase = "\r\x1b[K"
	for shown := false; ; shown = true {
		select {
		case <-p.ending:
			if shown {
				fmt.Fprint(p.out, erase)
			}
			return
		case <-next.C:
			fmt.Fprint(p.out, erase+p.line(time.Since(p.begun)))
			next.Reset(progressEvery)
		}
	}
}

func (p *progress) line(since time.Duration) string {
	done, all := p.done.Load(), p.all.Load()
	rate := float64(done) / since.Seconds()
	if done == 0 || done > all {
		line := fmt.Sprintf("%s %s %s, %s/s", p.does, thousands(done), p.noun, thousands(int64(rate)))
		if p.lasts > 0 {
			line += fmt.Sprintf(", %v left", max(0, p.lasts-since).Round(time.Second))
		}
		return line
	}
	left := time.Duration(float64(all-done) / rate * float64(time.Second))
	return fmt.Sprintf("%s %s of %s %s (%d%%), %s/s, %v left", p.does, thousands(done), thousands(all), p.noun,
		int(float64(done)/float64(all)*100), thousands(int64(rate)), left.Round(time.Second))
}
