package main

import "github.com/firn-id/firn/internal/sim"

// mutants are the wrong changes. Each is one that somebody might make, or has made:
// in published systems, or here.
var mutants = []mutant{
	{name: "the fence is not checked", regime: sim.Durable, edits: []edit{
		{"core.go", "c.ceiling = max(c.ceiling, uint64(through+1)<<c.layout.sequence)", "c.ceiling = uint64(c.layout.MaxTick()+1) << c.layout.sequence"},
	}},
	{name: "the fence is one tick too far", regime: sim.Durable, edits: []edit{
		{"core.go", "uint64(through+1)<<c.layout.sequence)", "uint64(through+2)<<c.layout.sequence)"},
	}},
	{name: "a grant begins one tick early", regime: sim.Durable, edits: []edit{
		{"core.go", "floor := uint64(g.After+1) <<", "floor := uint64(max(g.After, 0)) <<"},
	}},
	{name: "the fence moves before the write is confirmed", regime: sim.Durable, edits: []edit{
		{"lease/keep.go", "\t\tfurther, err := l.source.Renew", "\t\tearly := held\n\t\tearly.Through = ask.fence(held.After, l.cfg.Generator.Layout)\n\t\tl.renewed(early)\n\t\tfurther, err := l.source.Renew"},
	}},
	{name: "a write whose outcome is unknown counts", regime: sim.Durable, edits: []edit{
		{"store/register/register.go", "\tr.known = false\n\tswitch {\n\tcase err == nil:\n", "\tr.known = false\n\tif err != nil && !store.Unapplied(err) {\n\t\te, err = store.Entry{Key: r.Key, Value: value}, nil\n\t}\n\tswitch {\n\tcase err == nil:\n"},
	}},
	{name: "a renewal counts before it is confirmed", regime: sim.Durable, edits: []edit{
		{"lease/holding.go", "\tif err != nil {\n\t\terr = fmt.Errorf(\"lease: keep worker", "\tif err != nil && !errors.Is(err, store.ErrUnavailable) {\n\t\terr = fmt.Errorf(\"lease: keep worker"},
	}},
	{name: "what is read back counts as confirmed", regime: sim.Durable, edits: []edit{
		{"store/register/register.go", "\t\tcase value == nil && !r.Ours():\n\t\t\treturn r.found, nil\n", "\t\tcase value == nil, r.Ours():\n\t\t\treturn r.found, nil\n"},
	}},
	{name: "a lost answer is taken for a no", regime: sim.Durable, edits: []edit{
		{"store/register/register.go", "\t\tcase !conflict:\n\t\t\tfaults++\n\t\t\topen = err\n", "\t\tcase !conflict:\n\t\t\treturn store.Entry{}, store.ErrConflict\n"},
	}, harmless: "a claim goes on elsewhere, its slot unused until the fence; a holder looks, and finds its own token"},
	{name: "a slot given back forgets its fence", regime: sim.Durable, edits: []edit{
		{"lease/core.go", "\tm.fence = min(h.fence, last)\n", "\tm.fence = -1\n"},
	}},
	{name: "a slot is given back a tick before its last", regime: sim.Durable, edits: []edit{
		{"lease/lease.go", "pendingRelease{grant, last})", "pendingRelease{grant, last - 1})"},
	}},
	{name: "the worker of a switch is given back a tick before its last", regime: sim.Durable, edits: []edit{
		{"lease/another.go", "pendingRelease{l.grant, last})", "pendingRelease{l.grant, last - 1})"},
	}},
	{name: "the history takes another lap's count for a tick's", regime: sim.Durable, edits: []edit{
		{"history.go", "tick < h.oldest(high)", "false"},
		{"history.go", "	if u.tick > tick { // only if high is wrong; then report the tick as unknown\n		return 0, false, false\n	}\n", ""},
		{"history.go", "return u.until, u.tick == tick, true", "return u.until, u.tick >= 0, true"},
	}},
	{name: "the history takes a lapped tick for unused", regime: sim.Durable, edits: []edit{
		{"history.go", "tick < h.oldest(high)", "false"},
		{"history.go", "	if u.tick > tick { // only if high is wrong; then report the tick as unknown\n		return 0, false, false\n	}\n", ""},
	}},
	{name: "the sequence starts over after a rollback", regime: sim.Durable, edits: []edit{
		{"core.go", "c.pos, c.cur = c.entry(tick), tick", "c.pos, c.cur = c.startOf(tick), tick"},
	}},
	{name: "a renewal ignores the owner", regime: sim.Durable, edits: []edit{
		{"lease/core.go", "\tcase m.forgot:\n", "\tcase m.forgot && found.Owner == \"\":\n"},
		{"lease/core.go", "\tcase found.Free:\n", "\tcase found.Owner == \"\":\n"},
		{"lease/core.go", "\tcase found.Owner != r.token:\n", "\tcase found.Owner == \"\":\n"},
	}},
	{name: "a renewal may lower the fence", regime: sim.Durable, edits: []edit{
		{"lease/core.go", "\t\tm.fence = max(h.fence, wish)\n\t\tif m.write = m.fence > h.fence; m.write {", "\t\tm.fence = wish\n\t\tif m.write = m.fence != h.fence; false {"},
	}, harmless: "one is due only when half of the window is left, and asks for a whole one"},
	{name: "a claim writes over whatever is there", regime: sim.Durable, edits: []edit{
		{"lease/holding.go", "\t\tif found.Revision != over && !reg.Ours() {\n\t\t\treturn nil, errAgain\n\t\t}\n", ""},
	}},
	{name: "a claim does not begin after the fence it found", regime: sim.Durable, edits: []edit{
		{"lease/core.go", "after: max(slot.Fence, above)}", "after: max(-1, above)}"},
	}},
	{name: "a claim begins at the tick of the fence it found", regime: sim.Durable, edits: []edit{
		{"lease/core.go", "after: max(slot.Fence, above)}", "after: max(slot.Fence-1, -1, above)}"},
	}},
	{name: "slots are claimed before their fence has passed", regime: sim.Durable, edits: []edit{
		{"lease/pool.go", "if r.idle(s, ask.Now) && (", "if (s.Fence >= 0) && ("},
	}},
	{name: "the wrong-clock guard is gone", regime: sim.Durable, edits: []edit{
		{"lease/clock.go", "\tif clock == nil {\n\t\treturn s.check(s.read()), nil\n", "\tif true {\n\t\treturn s.check(s.read()), nil\n"},
	}},
	{name: "a fence follows a clock that has been put right", regime: sim.Durable, edits: []edit{
		{"lease/clock.go", "then.Sub(wall) > s.cfg.Tolerance", "then.Sub(wall) > 1<<62"},
	}},
	{name: "the end of a lost claim touches a later one of the same worker", regime: sim.Durable, edits: []edit{
		{"lease/holding.go", "if !ok || h.after != held.After {", "if !ok {"},
	}},
	{name: "a steady clock falls back below what was issued", regime: sim.Durable, edits: []edit{
		{"steady.go", "s.mono, s.time = mono, max(wall, used)\n", "s.mono, s.time = mono, wall\n"},
	}},
	{name: "ids go on after the end", regime: sim.Durable, edits: []edit{
		{"generator.go", "	g.revoke()\n	g.closed = true\n", "	g.closed = true\n"},
	}},
	{name: "a Local issues the rest of a block that was recalled", regime: sim.Durable, edits: []edit{
		{"local.go", "p.left > 0 && p.recalls == p.cell.recalls.Load() {", "p.left > 0 {"},
	}},
	{name: "a change of workers recalls no blocks", regime: sim.Durable, edits: []edit{
		{"generator.go", "	c.recalls.Add(1)\n", ""},
	}},
	{name: "what callers took from the word is forgotten", regime: sim.Durable, edits: []edit{
		{"generator.go", "word < sealed {\n		g.core.pos =", "word < sealed && word%7 == 0 {\n		g.core.pos ="},
	}},
	{name: "another worker goes on in the same tick", regime: sim.Durable, edits: []edit{
		{"core.go", "	if ordered {\n		floor = max(floor, c.behind)", "	if ordered && c.high > 0 {\n		floor = max(floor, c.behind)"},
	}},
	{name: "a new grant counts on from the first tick", regime: sim.Durable, edits: []edit{
		{"core.go", "		if cur < 0 { // no ids under this grant yet\n", "		if cur < -1 {\n"},
		{"core.go", "			pos = max(c.entry(cur), c.floor)\n		}\n		limit", "			pos = c.entry(cur)\n		}\n		limit"},
		{"core.go", "	if pos < c.floor || limit > c.ceiling {\n		return decision{err: errOutside}\n	}\n", ""},
	}},
	{name: "the buffer hands out an id twice", regime: sim.Durable, edits: []edit{
		{"prefetch/queue.go", "		b.head[0] = zero // the batch must not keep an issued string alive\n		b.head = b.head[1:]\n", "		_ = zero\n		if len(b.head) != 2 {\n			b.head = b.head[1:]\n		}\n"},
	}},
	{name: "the grace is not waited out", regime: sim.Reasserted, edits: []edit{
		{"lease/join.go", "s.attend(ctx, pool, wait)", "s.attend(ctx, pool, 1)"},
	}},
	{name: "the grace is a look, without the calls it makes", regime: sim.Reasserted, edits: []edit{
		{"lease/slots.go", "graceOf(cfg.Look, cfg.Generator.Layout.Unit()),", "cfg.Look,"},
	}},
	{name: "the calls of a look have no bound of their own, and no look is overdue", regime: sim.Reasserted, edits: []edit{
		{"lease/holding.go", "\treg := s.slot(held.Worker)\n\treg.Patience = patience(s.cfg.Look)\n", "\treg := s.slot(held.Worker)\n"},
		{"lease/lease.go", "l.overdue = l.traits.Overdue", "l.overdue = 0 * l.traits.Overdue"},
	}},
	{name: "a look may be slower than newcomers know", regime: sim.Reasserted, edits: []edit{
		{"lease/slots.go", "cfg.Look, 1, s.cfg.Look,", "cfg.Look, 1, maxWindow,"},
	}},
	{name: "who is refused for its clock does not look at its slot", regime: sim.Reasserted, edits: []edit{
		{"lease/holding.go", "\tif err != nil {\n\t\treturn held, false, errors.Join(fmt.Errorf(\"lease: look at worker", "\tif err == nil && clockErr != nil {\n\t\treturn held, false, clockErr\n\t}\n\tif err != nil {\n\t\treturn held, false, errors.Join(fmt.Errorf(\"lease: look at worker"},
	}},
	{name: "a copy older than a window is trusted", regime: sim.Reasserted, edits: []edit{
		{"lease/pool.go", "unreleased > next.Settled && allPassed &&", "allPassed && unreleased < -1 &&"},
	}},
	{name: "who has waited and opened the pool asks no more whether anybody is alive", regime: sim.Reasserted, edits: []edit{
		{"lease/join.go", "if own || next.Settled > pool.Settled {", "if true {"},
	}},
	{name: "another life of the store is trusted", regime: sim.Reasserted, edits: []edit{
		{"lease/join.go", "; !same {\n", "; !same && life == \"none\" {\n"},
	}},
	{name: "holders that find less than was confirmed do not raise the alarm", regime: sim.Reasserted, edits: []edit{
		{"lease/holding.go", "\t\t\terr = s.alarm(ctx) // at each try: the store may have been set back again\n", ""},
	}},
	{name: "a slot made in a store wiped meanwhile is used", regime: sim.Reasserted, edits: []edit{
		{"lease/join.go", "\tcase entry.Revision != pool.revision: // 0 if it is gone\n", "\tcase entry.Revision == -1:\n"},
	}},
	{name: "a worker without a record begins at the first tick", regime: sim.Reasserted, edits: []edit{
		{"lease/core.go", "\tif slot.Fence < 0 {\n", "\tif slot.Fence < -1 {\n"},
	}},
	{name: "holders do not write a vanished slot again", regime: sim.Reasserted, edits: []edit{
		{"lease/core.go", "\tcase m.forgot && unwritten:\n\t\tm.write = true", "\tcase m.forgot && unwritten:\n\t\tm.write = found != nil && found.revision != h.over"},
	}, harmless: "they raise the alarm at each look, so that newcomers wait for as long as they live"},
	{name: "holders do not write their fence over an older copy", regime: sim.Reasserted, edits: []edit{
		{"lease/core.go", "\tcase m.forgot && unwritten:\n\t\tm.write = true", "\tcase m.forgot && unwritten:\n\t\tm.write = found == nil || found.revision == h.over"},
	}},
	{name: "holders write a forgotten slot first, and raise the alarm then", regime: sim.Reasserted, edits: []edit{
		{"lease/holding.go", "\twarned := false\n", "\twarned, forgot := false, false\n"},
		{"lease/holding.go", "\t\tif err == nil && m.forgot {\n", "\t\tforgot = forgot || m.forgot\n\t\tif err != nil && warned {\n"},
		{"lease/holding.go", "\tm.life = written.Life\n", "\tif err == nil && forgot {\n\t\terr = s.alarm(ctx)\n\t}\n\tm.life = written.Life\n"},
	}},
	{name: "an alarm leaves a pool alone that is closed", regime: sim.Reasserted, edits: []edit{
		{"lease/holding.go", "\t\trecord.Open = false\n\t\treturn register.Encode(record)\n", "\t\tif found.Revision != 0 && !record.Open {\n\t\t\treturn nil, nil\n\t\t}\n\t\trecord.Open = false\n\t\treturn register.Encode(record)\n"},
	}},
	{name: "who leaves a store that has less does not raise the alarm", regime: sim.Reasserted, edits: []edit{
		{"lease/core.go", "m := move{holding: h, free: true, forgot: r.forgot(h, found)}", "m := move{holding: h, free: true}"},
	}},
	{name: "claims in a pool that was opened begin at the present", regime: sim.Reasserted, edits: []edit{
		{"lease/pool.go", "next.From = max(next.From, ", "next.From = min(next.From, "},
	}},
	{name: "a pool without holders is opened over what was listed", regime: sim.Reasserted, edits: []edit{
		{"lease/pool.go", "next.Settled, next.Open = unreleased, false\n", "next.Settled, wait = unreleased, time.Duration(p.Grace)\n"},
	}},
	{name: "a part of a pool without holders says nothing against its store", regime: sim.Reasserted, slow: true, edits: []edit{
		{"lease/part.go", "held >= fewHeld", "held >= 0"},
	}},
	{name: "who finds its ticks granted to another goes on", regime: sim.Reasserted, edits: []edit{
		{"lease/another.go", "if !current || !overlap && !errors.Is(cause, errPast) {", "if !current || lost.Worker >= 0 {"},
	}},
	{name: "who gives up a fence that seems to have passed goes on", regime: sim.Reasserted, edits: []edit{
		{"lease/another.go", "!overlap && !errors.Is(cause, errPast)", "!overlap"},
	}},
	{name: "a fence that has passed is moved", regime: sim.Reasserted, edits: []edit{
		{"lease/core.go", "(h.fence < now || r.ended", "(r.ended"},
	}},
	{name: "a worker is given back after its fence", regime: sim.Reasserted, edits: []edit{
		{"lease/core.go", "case !m.forgot && h.fence < now && !r.trusting:", "case false:"},
	}},
	{name: "a worker is taken over once its fence has passed here", regime: sim.Reasserted, edits: []edit{
		{"lease/core.go", "return r.ticks(2*r.tolerance) + 1 // a tick for rounding", "return 0"},
	}},
	{name: "a strict claim does not wait", regime: sim.Strict, edits: []edit{
		{"lease/claim.go", "s.cfg.Generator.Time.Sleep(ctx, s.rules.wait())", "s.cfg.Generator.Time.Sleep(ctx, 1)"},
	}},
	{name: "the strict wait counts the tolerance once", regime: sim.Strict, edits: []edit{
		{"lease/core.go", "func (r *rules) margin() time.Duration { return 4 * r.tolerance }", "func (r *rules) margin() time.Duration { return r.tolerance }"},
	}},
	{name: "the strict wait may be shorter than the window and the margin", regime: sim.Strict, edits: []edit{
		{"lease/core.go", "window+fenced+r.margin()+2*r.layout.Unit(), ", "window+fenced, "},
	}, harmless: "a fence is bounded by the wait, less the margin: the holder has a shorter window"},
	{name: "the clock check accepts the tolerance and the round trip", regime: sim.Strict, edits: []edit{
		{"lease/clock.go", "\t\tcase half <= s.cfg.Tolerance && offset.Abs() <= s.cfg.Tolerance-half: // the sum overflows for a clock that is centuries away\n", "\t\tcase offset.Abs() <= s.cfg.Tolerance+half:\n"},
	}},
	{name: "a strict claim is not looked at after its wait", regime: sim.Strict, edits: []edit{
		{"lease/core.go", "\tif found == nil || found.Owner != r.token || found.Free || found.After != h.after {\n\t\treturn move{}, fmt.Errorf(\"its slot changed while", "\tif found == nil && h.fence < 0 {\n\t\treturn move{}, fmt.Errorf(\"its slot changed while"},
	}},
	{name: "a strict claim is read after its wait, and not written", regime: sim.Strict, edits: []edit{
		{"lease/core.go", "\tm := move{holding: h, write: true}\n\tm.after = max(h.after, now-1)\n", "\tm := move{holding: h}\n\tm.after = max(h.after, now-1)\n"},
	}},
	{name: "a strict claim that vanished is written again", regime: sim.Strict, edits: []edit{
		{"lease/core.go", "\tif found == nil || found.Owner != r.token || found.Free || found.After != h.after {\n\t\treturn move{}, fmt.Errorf(\"its slot changed while", "\tif found != nil && (found.Owner != r.token || found.Free || found.After != h.after) {\n\t\treturn move{}, fmt.Errorf(\"its slot changed while"},
	}},
	{name: "a strict holder goes on after its fence", regime: sim.Strict, edits: []edit{
		{"lease/core.go", "\treturn r.strict > 0 && fence <= now+r.ticks(r.margin())+1\n", "\treturn r.strict < 0\n"},
	}},
	{name: "a strict claim that came late reaches further than newcomers wait", regime: sim.Strict, edits: []edit{
		{"lease/core.go", "\tif r.strict > 0 {\n\t\th.fence = min(h.fence, h.after+r.reach())\n\t}\n", ""},
		{"lease/core.go", "\tm.fence = max(r.bounded(ask.fence(m.after, r.layout), now), m.after)\n", "\tm.fence = ask.fence(m.after, r.layout)\n"},
	}},
	{name: "a strict renewal reaches further than newcomers wait", regime: sim.Strict, edits: []edit{
		{"lease/holding.go", "wish = s.rules.bounded(Ask{now, ask.From, ask.Window}.fence(h.after, s.cfg.Generator.Layout), now)", "wish = Ask{now, ask.From, ask.Window}.fence(h.after, s.cfg.Generator.Layout)"},
	}},
	{name: "a strict claim begins at what it found, not after its wait", regime: sim.Strict, edits: []edit{
		{"lease/core.go", "\t\th.after = max(h.after, ask.Now+r.ticks(r.wait())+1)\n", ""},
		{"lease/core.go", "\tm.after = max(h.after, now-1)\n", "\tm.after = h.after\n"},
	}},
	{name: "who may count no further ahead waits for a time that is over", regime: sim.Durable, edits: []edit{
		{"core.go", "c.layout.nanos(max(now+1, tick-c.chain.find(policyAhead).ticks))", "c.layout.nanos(tick - c.chain.find(policyAhead).ticks)"},
	}},
	{name: "a steady clock without a fence does not stay near the wall clock", regime: sim.Alone, edits: []edit{
		{"generator.go", "\t\tif g.alone {\n\t\t\tat = g.bounded(at)\n\t\t}\n", ""},
	}},
	{name: "a generator reads the monotonic clock before the wall", regime: sim.Alone, edits: []edit{
		{"generator.go", "\twall = unixNanos(g.time.Wall())\n\treturn int64(g.time.Monotonic()), wall\n", "\tmono = int64(g.time.Monotonic())\n\treturn mono, unixNanos(g.time.Wall())\n"},
	}, harmless: "the steady clock is within 2 ms of the wall clock before the first id"},
	{name: "a generator without a lease begins in the present tick", regime: sim.Alone, edits: []edit{
		{"generator.go", "\t\tafter = tick\n\t}\n\tcfg.Unfenced", "\t\tafter = tick - 1\n\t}\n\tcfg.Unfenced"},
	}},
	{name: "a spare may have been used before the start of the process", regime: sim.Alone, edits: []edit{
		{"lease/fixed.go", "true, asked.From-1, map", "true, -1, map"},
	}},
	{name: "a spare is used again below its ids", regime: sim.Alone, edits: []edit{
		{"lease/fixed.go", "max(last, held.After)}", "held.After}"},
	}},
	{name: "a number that was left is used before it is released", regime: sim.Alone, edits: []edit{
		{"lease/fixed.go", "use{from - 1, endless}", "use{from - 1, from - 1}"},
	}},
	{name: "a lease without a store ends without saying that its ids are ahead of the clock", regime: sim.Alone, edits: []edit{
		{"lease/fixed.go", "if latest < from {", "if latest < from || true {"},
	}},
	{name: "a restart does not count the ticks of the policy ahead", regime: sim.Alone, edits: []edit{
		{"config.go", "max(lead, unit*min(", "max(lead, 0*min("},
	}},
	{name: "a holder goes on while its look is overdue", regime: sim.Reasserted, edits: []edit{
		{"lease/lease.go", "l.overdue = l.traits.Overdue", "l.overdue = 0 * l.traits.Overdue"},
	}},
}
