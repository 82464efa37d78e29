package cli

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A lockedBuilder may be written and read concurrently.
type lockedBuilder struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuilder) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuilder) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestProgressIsShownWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuilder
		p := startProgress(&out, "imported", "names", 0, 0)
		p.reach(1, 2000)
		time.Sleep(progressAfter - 1)
		synctest.Wait()
		if out.String() != "" {
			t.Errorf("at once: %q", out.String())
		}
		time.Sleep(progressAfter + 1)
		synctest.Wait()
		p.reach(1400, 2000)
		time.Sleep(progressEvery)
		p.end()
		const erase = "\r\x1b[K"
		if lines := strings.Split(out.String(), erase); lines[1] != "imported 1 of 2,000 names (0%), 1/s, 23m19s left" ||
			lines[len(lines)-2] != "imported 1,400 of 2,000 names (70%), 933/s, 1s left" || lines[len(lines)-1] != "" {
			t.Errorf("%q", lines)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuilder
		p := startProgress(&out, "made", "ids", 0, 3*time.Second)
		p.add(7)
		p.add(3)
		time.Sleep(time.Second)
		p.end()
		if !strings.Contains(out.String(), "made 10 ids, 14/s, 2s left") {
			t.Errorf("without an end in sight: %q", out.String())
		}
	})
}

func TestProgressIsForPeople(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, "made", "ids", 1, 0)
	p.add(1)
	p.reach(1, 1)
	p.end()
	if p != nil || out.Len() > 0 {
		t.Errorf("%v, %q", p, out.String())
	}
}
