package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/bench/internal/wallclock"
	"github.com/firn-id/firn/store/storetest/servers"
)

// setBack is a store that loses data: it is wiped, and restarted from an older copy of its files. By
// design counters then repeat ids, so only snowflake ids are made.
func setBack(make func(*host.Host, *network.Network, string) (*backend, error), wipe func(*servers.Server) error) func(*host.Host, *network.Network, string) (*backend, error) {
	return func(h *host.Host, n *network.Network, dir string) (*backend, error) {
		b, err := make(h, n, dir)
		if err != nil {
			return nil, err
		}
		b.forgets = true
		b.wipe = func() error { return wipe(b.nodes[0].server) }
		b.faults = []fault{
			{name: "store set back to a copy", weight: 5, solo: true, do: storeSetBack(0, wallForgets/2)},
			{name: "store set back to a copy older than a window", weight: 2, solo: true, do: storeSetBack(noticed, noticed+wallForgets)},
			{name: "store wiped", weight: 4, solo: true, do: storeWiped},
			{name: "store wiped while the connections of a process are dead", weight: 3, solo: true, do: wipedDead},
			{name: "killed and restarted", weight: 3, do: killed},
			{name: "ended and restarted", weight: 2, do: ended},
			{name: "store killed and restarted", weight: 2, alone: true, do: storeKilled},
		}
		if wallclock.Supported() {
			b.faults = append(b.faults, fault{name: "store wiped while the clock of a process is minutes off", weight: 3, solo: true, do: wipedOff})
		}
		b.beyond = []fault{
			{name: "BEYOND: set back to a copy from before a claim", weight: 4, solo: true, do: claimForgotten},
			{name: "BEYOND: wiped while a process is cut off", weight: 4, solo: true, do: wipedUnseen},
		}
		return b, nil
	}
}

// noticed is how old a copy must be for a new process to detect it: older than a window plus twice the
// tolerance for fences plus the difference of clocks in this test.
const noticed = wallForgets + 20*time.Second + 2*time.Second

// checkIn is how long living holders have to notice what happened to the store before the next fault
// of a process: more than a look (3 s) and its calls. It also suffices for all holders that lost their
// worker to get another.
const checkIn = 6 * time.Second

// storeSetBack copies the files of the store, lets time pass, and restarts it from the copy. No process
// starts meanwhile: Firn does not promise that the loss of a claim is harmless.
func storeSetBack(from, to time.Duration) func(*world, act) error {
	return func(w *world, a act) error {
		w.comers.Lock()
		time.Sleep(checkIn)
		err := w.setBack(a, func() error {
			time.Sleep(between(a.rng, from, to))
			return nil
		})
		w.comers.Unlock() // new processes start at once
		time.Sleep(checkIn)
		return err
	}
}

// claimForgotten makes a process acquire another worker between copy and restart.
func claimForgotten(w *world, a act) error {
	err := w.setBack(a, func() error { return killed(w, a) })
	time.Sleep(checkIn)
	return err
}

func (w *world) setBack(a act, meanwhile func() error) error {
	defer w.away(a)()
	nodes := w.store.nodes
	copies := filepath.Join(w.dir, "copy")
	if err := each(nodes, func(n *node) { n.server.Pause() }); err != nil {
		return err
	}
	var err error
	for _, n := range nodes {
		err = errors.Join(err, replaceFiles(n.server.Path(""), filepath.Join(copies, n.name)))
	}
	if err := errors.Join(err, each(nodes, func(n *node) { n.server.Resume() })); err != nil {
		return err
	}
	if err := meanwhile(); err != nil {
		return err
	}
	if err := each(nodes, func(n *node) { n.server.Kill() }); err != nil {
		return err
	}
	for _, n := range nodes {
		err = errors.Join(err, replaceFiles(filepath.Join(copies, n.name), n.server.Path("")))
	}
	return errors.Join(err, each(nodes, func(n *node) { n.server.Restart() }))
}

// replaceFiles replaces the contents of a folder with those of another, with owners and modes.
func replaceFiles(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(to, "*"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.RemoveAll(name); err != nil {
			return err
		}
	}
	return command("cp", "-a", from+"/.", to)
}

func storeWiped(w *world, a act) error {
	err := w.store.wipe()
	time.Sleep(checkIn)
	return err
}

// wipedUnseen wipes the store while a holder is cut off and cannot notice.
func wipedUnseen(w *world, a act) error {
	w.net.Block(func(client, _ string, _ bool) bool { return client == a.on.name })
	defer w.net.Block(nil)
	return storeWiped(w, a)
}

// wipedDead wipes the store while the connections of a holder hang. The holder can open new ones if it
// does not wait too long for the old ones.
func wipedDead(w *world, a act) error {
	w.net.Hang(func(client, _ string) bool { return client == a.on.name })
	err := storeWiped(w, a)
	time.Sleep(checkIn) // newcomers are there
	return err
}

// wipedOff wipes the store while the clock of a holder is so far off that it cannot renew.
func wipedOff(w *world, a act) error {
	offset := -between(a.rng, time.Minute, 10*time.Minute)
	if w.store.clock && a.rng.IntN(4) == 0 { // mostly behind: then it continues to its fence
		offset = -offset
	}
	if err := a.on.clock(offset); err != nil {
		return err
	}
	time.Sleep(between(a.rng, 0, wallForgets))
	err := storeWiped(w, a)
	time.Sleep(checkIn) // newcomers are there
	return errors.Join(err, a.on.clock(0))
}

func wipeRedis(s *servers.Server) error {
	_, err := redisCLI(s, "FLUSHALL")
	return err
}

func wipeMariaDB(s *servers.Server) error {
	_, err := mariadb(s, "DELETE FROM firn.firn_registers")
	return err
}

func wipePostgres(s *servers.Server) error {
	_, err := psql(s, "DELETE FROM firn_registers")
	return err
}

func wipeEtcd(s *servers.Server) error {
	return command("env", "ETCDCTL_API=3", "etcdctl", "--endpoints", s.Addr(), "del", "", "--from-key")
}

// wipeZooKeeper removes the files, since ZooKeeper's tools fail when znodes come and go.
func wipeZooKeeper(s *servers.Server) error {
	return errors.Join(host.Attempt(s.Kill), os.RemoveAll(s.Path("data/version-2")), host.Attempt(s.Restart))
}
