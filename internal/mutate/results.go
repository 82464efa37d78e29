package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// A result is a line of the results file.
type result struct {
	ID     string  `json:"id"`
	Key    string  `json:"key"`
	Hash   string  `json:"hash"` // of the mutated file: the same mutant of the same source
	Fate   fate    `json:"fate"`
	By     string  `json:"by,omitempty"`
	Cost   float64 `json:"cost"` // processor time in seconds
	Listed string  `json:"-"`    // the reason why it was expected to survive
	at     int     // its line
}

func (m mutant) hash() string {
	sum := sha256.Sum256(group{m}.text())
	return hex.EncodeToString(sum[:8])
}

// A ledger keeps results in a file, so that a run continues where an earlier one stopped.
type ledger struct {
	mu    sync.Mutex
	file  *os.File // nil: results are not kept
	known map[string]result
}

// openLedger reads the results so far, except survivors, since the tests may have improved. Without a name it keeps
// nothing.
func openLedger(name string) (*ledger, error) {
	l := &ledger{known: map[string]result{}}
	if name == "" {
		return l, nil
	}
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		l.known[r.Hash] = r
		if r.Fate == survived {
			delete(l.known, r.Hash)
		}
	}
	l.file, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return l, errors.Join(err, lines.Err())
}

func (l *ledger) find(m mutant) (result, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.known[m.hash()]
	r.ID, r.Key, r.at = m.id(), m.key(), m.line
	return r, ok
}

func (l *ledger) add(r result) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[r.Hash] = r
	if l.file == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = l.file.Write(append(line, '\n'))
	return err
}

func (l *ledger) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
