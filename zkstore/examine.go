package zkstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/dial"
)

// askTimeout bounds connecting to a server, and its answer.
const askTimeout = 2 * time.Second

// examine asks each server in the URL for its mode and version, by the
// command srvr, which servers answer by default, and when Firn's znodes were created there.
func (s *Store) examine(ctx context.Context) ([]store.Finding, error) {
	if _, err := backend.Do(ctx, s.calls, "examine", s.root, synced(s, func(context.Context) (struct{}, error) { return struct{}{}, nil })); err != nil {
		return nil, err
	}
	return s.ensemble(ctx, true), nil
}

// Diagnose is Examine for a URL that [Open] cannot open, as when most of the servers are down.
func Diagnose(ctx context.Context, text string) ([]store.Finding, error) {
	s, err := parse(text)
	if err != nil {
		return nil, err
	}
	return s.ensemble(ctx, false), nil
}

// ensemble asks each server. A silent one may serve all the same, if the ensemble does.
func (s *Store) ensemble(ctx context.Context, serves bool) []store.Finding {
	var silent, answering, modes []string
	var versions []store.Finding
	for _, server := range s.servers {
		mode, version, err := ask(ctx, server)
		if err != nil {
			silent = append(silent, server)
			continue
		}
		answering, modes = append(answering, server), append(modes, mode)
		if mode != standalone && forgets(version) {
			number, _, _ := strings.Cut(version, "-")
			versions = append(versions, store.Finding{Subject: "version", Verdict: store.Bad, Says: server + " is a ZooKeeper " + number,
				Advice: "a server that was killed or down may lack confirmed writes, which are lost if it becomes the leader: upgrade to 3.9.4 or later"})
		}
	}
	ensembles := s.ensembles(ctx, answering)
	if ensembles[none] && len(ensembles) > 1 { // perhaps another process made the znode meanwhile
		ensembles = s.ensembles(ctx, answering)
	}
	all, alone := strings.Join(modes, ", "), slices.Contains(modes, standalone)
	says := fmt.Sprintf("%d of the %d servers named answer", len(modes), len(s.servers))
	if all != "" {
		says += " (" + all + ")"
	}
	return append([]store.Finding{backend.Judge("ensemble").
		When(strings.Count(all, "leader") > 1 || alone && len(modes) > 1 || len(ensembles) > 1, store.Bad, says,
			"they do not belong to one ensemble: each process uses whichever it finds first, so ids repeat; compare their server.N lines").
		When(len(silent) > 0 && !serves, store.Bad, says, "start "+strings.Join(silent, ", ")+": most servers of the ensemble must be up and see each other").
		When(len(silent) > 0, store.Doubtful, says, "start "+strings.Join(silent, ", ")+", or add srvr to 4lw.commands.whitelist; most servers must be up").
		When(alone, store.Doubtful, says, "with three servers one may fail; without this one, holders continue until their fences").
		When(len(s.servers) < 3, store.Doubtful, says, "name all servers of the ensemble, so that clients find another when these fail").
		Else(says)}, versions...)
}

// ensembles returns what made reports of servers.
func (s *Store) ensembles(ctx context.Context, servers []string) map[string]bool {
	of := map[string]bool{}
	for _, server := range servers {
		if made, err := s.made(ctx, server); err == nil {
			of[made] = true
		}
	}
	return of
}

const none = "none"

// made reports by which change, and when, the ensemble of a server created the first level of all Firn's
// znodes, or none.
func (s *Store) made(ctx context.Context, server string) (string, error) {
	conn, err := connect([]string{server}, s.dialer)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	first := cmp.Or(s.root, "/firn")
	return backend.Do(ctx, s.calls, "examine", server, func(context.Context) (string, error) {
		if _, err := conn.Sync(first); err != nil {
			return "", err
		}
		there, stat, err := conn.Exists(first)
		if err != nil || !there {
			return none, err
		}
		return fmt.Sprint(stat.Czxid, stat.Ctime), nil
	})
}

const standalone = "standalone" // the mode of a server that runs alone

// forgets reports whether an ensemble of a version may lose confirmed writes, as all before 3.9.4 may. Before
// 3.8.5, and in 3.9.0 and 3.9.1, a follower that is killed may be in the new epoch without what the leader
// sent it (ZOOKEEPER-4643). Before 3.9.3, 3.8.6 included, a follower whose log is slow while the leader is
// lost never logs what it has confirmed (ZOOKEEPER-4712). In 3.9.3 a leader may send incomplete data to a
// server that was down (ZOOKEEPER-4925).
func forgets(version string) bool {
	var major, minor, patch int
	n, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch)
	if err != nil || n != 3 || major > 3 {
		return false
	}
	return major < 3 || minor < 9 || minor == 9 && patch < 4
}

// ask asks a server for its mode (leader, follower, standalone, ...) and version, with a suffix.
func ask(ctx context.Context, server string) (mode, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := (&dial.Dialer{}).Dial(ctx, "tcp", server)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = c.Close() }() // the answer has been read
	if err := c.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return "", "", err
	}
	if _, err := io.WriteString(c, "srvr"); err != nil {
		return "", "", err
	}
	answer, err := io.ReadAll(io.LimitReader(c, 64<<10))
	for line := range strings.Lines(string(answer)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ": "); name {
		case "Zookeeper version":
			version = value
		case "Mode":
			return value, version, nil
		}
	}
	return "", "", errors.Join(err, fmt.Errorf("it answers %.100q", answer))
}
