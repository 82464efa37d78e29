package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/bench/internal/wallclock"
)

// A fault is an event that Firn promises to survive.
type fault struct {
	name   string
	weight int
	alone  bool // it changes the network or the store: only one at a time
	solo   bool // no other fault happens at the same time
	do     func(w *world, a act) error
	mark   uint32 // its number, from 1
}

// tolerance is how much clocks may differ: Firn's default of 10 s, less a margin since two clocks are
// both compared with a third.
const tolerance = 8 * time.Second

// processFaults affect one firn serve.
func processFaults() []fault {
	all := []fault{
		{name: "stopped, less than a window", weight: 4, do: stopFor(50*time.Millisecond, 1500*time.Millisecond)},
		{name: "stopped past the window", weight: 5, do: stopFor(wallWindow, 3*wallWindow)},
		{name: "killed and restarted", weight: 6, do: killed},
		{name: "ended and restarted", weight: 4, do: ended},
	}
	if wallclock.Supported() {
		all = append(all,
			fault{name: "clock moved by milliseconds", weight: 4, do: clockBy(time.Millisecond, 50*time.Millisecond)},
			fault{name: "clock moved by seconds", weight: 4, do: clockBy(200*time.Millisecond, 3*time.Second)},
			fault{name: "clock moved within the tolerance", weight: 4, do: clockBy(3*time.Second, tolerance)},
			fault{name: "clock moved by minutes", weight: 3, do: clockBy(time.Minute, 10*time.Minute)},
			fault{name: "clock moved by an hour", weight: 3, do: clockBy(time.Hour, time.Hour)},
		)
	}
	return all
}

func stopFor(from, to time.Duration) func(*world, act) error {
	return func(_ *world, a act) error { return a.on.stop(between(a.rng, from, to)) }
}

func killed(w *world, a act) error {
	if err := a.on.kill(); err != nil {
		return err
	}
	time.Sleep(between(a.rng, 0, wallWindow))
	w.restart(a)
	return nil
}

func ended(w *world, a act) error {
	if err := a.on.leave(); err != nil {
		w.log.printf("%s could not return everything: %v", a.on.name, err) // the store may be unreachable
	}
	time.Sleep(between(a.rng, 0, 100*time.Millisecond))
	w.restart(a)
	return nil
}

// restart starts a process again, perhaps with a wrong clock. The clock is never far behind: such a process
// could wait forever for a worker with a fence in its past, since others take those first.
func (w *world) restart(a act) {
	ahead := time.Duration(0)
	if most := w.store.newcomers(); a.rng.IntN(2) == 0 && wallclock.Supported() {
		ahead = between(a.rng, -time.Second, most)
	}
	if err := a.on.start(ahead); err != nil {
		w.log.printf("%s does not start: %v", a.on.name, err)
		w.stuck.Add(1)
	}
}

// newcomers returns how far the clocks of new processes may be ahead. If the store has lost a holder,
// only the agreement of clocks within the grace protects it.
func (b *backend) newcomers() time.Duration {
	if b.forgets {
		return time.Second
	}
	return tolerance
}

// clockBy sets the wall clock of a process forward or back, and after a while to another time within
// the tolerance or to the right time. A store without a clock cannot detect that a process is far ahead,
// and its workers would stay unused until that time. So over such a store the clock only goes back.
func clockBy(from, to time.Duration) func(*world, act) error {
	return func(w *world, a act) error {
		offset := between(a.rng, from, to)
		if back := a.rng.IntN(2) == 0; back || offset > tolerance && !w.store.clock {
			offset = -offset
		}
		for _, o := range []time.Duration{offset, settled(a.rng, offset)} {
			w.log.printf("clock of %s: %+v", a.on.name, o)
			if err := a.on.clock(o); err != nil {
				return err
			}
			time.Sleep(between(a.rng, 200*time.Millisecond, 2*time.Second))
		}
		return nil
	}
}

// settled returns the offset that a clock keeps after a fault.
func settled(rng *rand.Rand, offset time.Duration) time.Duration {
	switch rng.IntN(3) {
	case 0:
		return 0
	case 1:
		if offset.Abs() <= tolerance {
			return offset
		}
	}
	return between(rng, -tolerance, tolerance)
}

// networkFaults affect the network between processes and their store.
func networkFaults() []fault {
	return []fault{
		{name: "cut off, less than a window", weight: 3, alone: true, do: cutFor(100*time.Millisecond, 1500*time.Millisecond)},
		{name: "cut off past the window", weight: 4, alone: true, do: cutFor(wallWindow, 3*wallWindow)},
		{name: "answers of the store lost", weight: 4, alone: true, do: answersLost},
		{name: "connections reset", weight: 2, alone: true, do: connectionsReset},
		{name: "connections dead", weight: 2, alone: true, do: connectionsDead},
		{name: "store cut off from all processes", weight: 3, alone: true, do: storeCut},
	}
}

func cutFor(from, to time.Duration) func(*world, act) error {
	return func(w *world, a act) error {
		w.cut(func(client, _ string, _ bool) bool { return client == a.on.name }, between(a.rng, from, to))
		return nil
	}
}

// cut holds back what a rule says for a time.
func (w *world) cut(rule network.Rule, d time.Duration) {
	w.net.Block(rule)
	defer w.net.Block(nil)
	time.Sleep(d)
}

// answersLost makes the store apply writes whose answers are lost.
func answersLost(w *world, a act) error {
	mine := func(client, _ string) bool { return client == a.on.name }
	for range 1 + a.rng.IntN(4) {
		w.net.Block(func(client, _ string, answer bool) bool { return answer && client == a.on.name })
		time.Sleep(between(a.rng, 50*time.Millisecond, 1500*time.Millisecond))
		w.net.Reset(mine)
		w.net.Block(nil)
		time.Sleep(between(a.rng, 0, 300*time.Millisecond))
	}
	return nil
}

func connectionsReset(w *world, a act) error {
	for range 3 + a.rng.IntN(5) {
		w.net.Reset(func(client, _ string) bool { return client != "" })
		time.Sleep(between(a.rng, 10*time.Millisecond, 400*time.Millisecond))
	}
	return nil
}

// connectionsDead makes all connections of a process hang forever; new connections work.
func connectionsDead(w *world, a act) error {
	for range 1 + a.rng.IntN(3) {
		w.net.Hang(func(client, _ string) bool { return client == a.on.name })
		time.Sleep(between(a.rng, 500*time.Millisecond, steadyWindow))
	}
	return nil
}

func storeCut(w *world, a act) error {
	defer w.away(a)()
	w.cut(func(client, _ string, _ bool) bool {
		return client == "next" || slices.ContainsFunc(w.issuers, func(i *issuer) bool { return i.name == client })
	}, between(a.rng, 200*time.Millisecond, 5*time.Second))
	return nil
}

// nodeFaults affect one or all servers of the store.
func nodeFaults() []fault {
	return []fault{
		{name: "store killed and restarted", weight: 4, alone: true, do: storeKilled},
		{name: "store stands still", weight: 3, alone: true, do: storeStill},
	}
}

// nodeCut cuts off one node from all others.
func nodeCut(w *world, a act) error {
	defer w.away(a)()
	node := w.store.nodes[a.rng.IntN(len(w.store.nodes))]
	w.cut(network.Sides(node.name), between(a.rng, 200*time.Millisecond, 2*steadyWindow))
	return nil
}

// some chooses one or several nodes.
func (w *world) some(rng *rand.Rand) []*node {
	all := w.store.nodes
	n := 1
	if rng.IntN(3) == 0 {
		n += rng.IntN(len(all))
	}
	var chosen []*node
	for _, k := range rng.Perm(len(all))[:n] {
		chosen = append(chosen, all[k])
	}
	return chosen
}

func storeKilled(w *world, a act) error {
	defer w.away(a)()
	chosen := w.some(a.rng)
	down := between(a.rng, 0, 5*time.Second)
	for _, n := range chosen {
		if n.dying == nil {
			continue
		}
		if err := n.dying(); err != nil {
			return err
		}
	}
	if err := each(chosen, func(n *node) { n.server.Kill() }); err != nil {
		return err
	}
	time.Sleep(down)
	return each(chosen, func(n *node) { n.server.Restart() })
}

func storeStill(w *world, a act) error {
	defer w.away(a)()
	chosen := w.some(a.rng)
	if err := each(chosen, func(n *node) { n.server.Pause() }); err != nil {
		return err
	}
	time.Sleep(between(a.rng, 200*time.Millisecond, 6*time.Second))
	return each(chosen, func(n *node) { n.server.Resume() })
}

// each runs a function for all nodes concurrently.
func each(nodes []*node, do func(*node)) error {
	fs := make([]func(), len(nodes))
	for k, n := range nodes {
		fs[k] = func() { do(n) }
	}
	return host.Together(fs...)
}
