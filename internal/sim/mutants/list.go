package main

import "github.com/firn-id/firn/internal/sim"

// mutants are the wrong changes. Each is one that somebody might make, or has made:
// in published systems, or here.
var mutants = []mutant{
	{
		name: "the fence is not checked", regime: sim.Durable,
		edits: []edit{{"core.go", "c.ceiling = max(c.ceiling, uint64(through+1)<<c.layout.sequence)", "c.ceiling = uint64(c.layout.MaxTick()+1) << c.layout.sequence"}},
	},
	{
		name: "the fence is one tick too far", regime: sim.Durable,
		edits: []edit{{"core.go", "uint64(through+1)<<c.layout.sequence)", "uint64(through+2)<<c.layout.sequence)"}},
	},
	{
		name: "a grant begins one tick early", regime: sim.Durable,
		edits: []edit{{"core.go", "floor := uint64(g.After+1) <<", "floor := uint64(max(g.After, 0)) <<"}},
	},
	{
		name: "the fence moves before the write is confirmed", regime: sim.Durable,
		edits: []edit{{
			"lease/lease.go", "		held, err = l.source.Renew(ctx, held, ask)\n",
			"		hasty := held\n		hasty.Through = ask.fence(held.After, l.cfg.Generator.Layout)\n		l.renewed(hasty)\n		held, err = l.source.Renew(ctx, held, ask)\n",
		}},
	},
	{
		name: "a lost answer is taken for a yes", regime: sim.Durable,
		edits: []edit{{"lease/holding.go", "	for try := range maxReadBacks {", "	if err != nil {\n		return old, nil\n	}\n	for try := range maxReadBacks {"}},
	},
	{
		name: "a lost answer is taken for a no", regime: sim.Durable,
		edits:    []edit{{"lease/holding.go", "	for try := range maxReadBacks {", "	if err != nil {\n		return 0, store.ErrConflict\n	}\n	for try := range maxReadBacks {"}},
		harmless: "a claim goes on elsewhere, its slot unused until the fence; a holder looks, and finds its own token",
	},
	{
		name: "a slot given back forgets its fence", regime: sim.Durable,
		edits: []edit{{"lease/holding.go", "h.fence = min(fence, h.fence)\n", "h.fence = -1\n"}},
	},
	{
		name: "a slot is given back a tick before its last", regime: sim.Durable,
		edits: []edit{{"lease/lease.go", "farewell{grant, last})", "farewell{grant, last - 1})"}},
	},
	{
		name: "the worker of a switch is given back a tick before its last", regime: sim.Durable,
		edits: []edit{{"lease/lease.go", "farewell{l.grant, last})", "farewell{l.grant, last - 1})"}},
	},
	{
		name: "the history takes another lap's count for a tick's", regime: sim.Durable,
		edits: []edit{
			{"history.go", "tick < h.oldest(high)", "false"},
			{"history.go", "	if u.tick > tick { // cannot happen while high is right; never guess\n		return 0, false, false\n	}\n", ""},
			{"history.go", "return u.until, u.tick == tick, true", "return u.until, u.tick >= 0, true"},
		},
	},
	{
		name: "the history takes a lapped tick for unused", regime: sim.Durable,
		edits: []edit{
			{"history.go", "tick < h.oldest(high)", "false"},
			{"history.go", "	if u.tick > tick { // cannot happen while high is right; never guess\n		return 0, false, false\n	}\n", ""},
		},
	},
	{
		name: "the sequence starts over after a rollback", regime: sim.Durable,
		edits: []edit{{"core.go", "c.pos, c.cur = c.entry(tick), tick", "c.pos, c.cur = c.startOf(tick), tick"}},
	},
	{
		name: "a renewal ignores the owner", regime: sim.Durable,
		edits: []edit{{"lease/holding.go", "if slot.Owner != s.token || slot.Free {", "if slot.Owner == \"\" {"}},
	},
	{
		name: "a renewal may lower the fence", regime: sim.Durable,
		edits:    []edit{{"lease/holding.go", "h.fence = max(h.fence, fence)", "h.fence = fence"}},
		harmless: "one is due only when half of the window is left, and asks for a whole one",
	},
	{
		name: "a claim writes over whatever is there", regime: sim.Durable,
		edits: []edit{{
			"lease/claim.go", "	h.revision, err = s.write(ctx, slot.Worker, slot.revision, h, false)\n",
			"	there, err := s.cfg.Store.Get(ctx, slotKey(s.cfg.Pool, s.cfg.Layout, s.cfg.Datacenter, slot.Worker))\n" +
				"	if err != nil {\n		there.Revision = slot.revision\n	}\n" +
				"	h.revision, err = s.write(ctx, slot.Worker, there.Revision, h, false)\n",
		}},
	},
	{
		name: "a claim does not begin after the fence it found", regime: sim.Durable,
		edits: []edit{{"lease/claim.go", "	after := slot.Fence\n", "	after := firn.Tick(-1)\n"}},
	},
	{
		name: "slots are claimed before their fence has passed", regime: sim.Durable,
		edits: []edit{{"lease/choose.go", "if s.Fence < now {", "if s.Fence < now+1000 {"}},
	},
	{
		name: "the wrong-clock guard is gone", regime: sim.Durable,
		edits: []edit{{"lease/clock.go", "	if !ok {\n		return s.read(), nil\n", "	if !ok || clock != nil {\n		return s.read(), nil\n"}},
	},
	{
		name: "a fence follows a clock that has been put right", regime: sim.Durable,
		edits: []edit{{"lease/clock.go", "then.Sub(wall) > s.cfg.Tolerance", "then.Sub(wall) > 1<<62"}},
	},
	{
		name: "the end of a lost claim touches a later one of the same worker", regime: sim.Durable,
		edits: []edit{{"lease/holding.go", "if !ok || h.after != held.After {", "if !ok {"}},
	},
	{
		name: "a steady clock falls back below what was issued", regime: sim.Durable,
		edits: []edit{{"steady.go", "s.mono, s.time = mono, max(wall, used)\n", "s.mono, s.time = mono, wall\n"}},
	},
	{
		name: "ids go on after the end", regime: sim.Durable,
		edits: []edit{{"generator.go", "	g.collect(g.cell.Load())\n	g.closed = true\n", "	g.closed = true\n"}},
	},
	{
		name: "what callers took from the word is forgotten", regime: sim.Durable,
		edits: []edit{{"generator.go", "word < sealed {\n		g.core.pos =", "word < sealed && word%7 == 0 {\n		g.core.pos ="}},
	},
	{
		name: "another worker goes on in the same tick", regime: sim.Durable,
		edits: []edit{{"core.go", "	if ordered {\n		floor = max(floor, c.behind)", "	if ordered && c.high > 0 {\n		floor = max(floor, c.behind)"}},
	},
	{
		name: "a new grant counts on from the first tick", regime: sim.Durable,
		edits: []edit{
			{"core.go", "		if cur < 0 { // nothing was issued under this grant\n", "		if cur < -1 {\n"},
			{"core.go", "			pos = max(c.entry(cur), c.floor)\n		}\n		limit", "			pos = c.entry(cur)\n		}\n		limit"},
			{"core.go", "	if pos < c.floor || limit > c.ceiling {\n		return decision{err: errOutside}\n	}\n", ""},
		},
	},
	{
		name: "the buffer hands out an id twice", regime: sim.Durable,
		edits: []edit{{"prefetch/take.go", "		b.head[0] = none // a text that was issued shall not be kept alive by its batch\n		b.head = b.head[1:]\n", "		_ = none\n		if len(b.head) != 2 {\n			b.head = b.head[1:]\n		}\n"}},
	},
	{
		name: "the grace of a new pool is not waited out", regime: sim.Reasserted,
		edits: []edit{{"lease/join.go", "s.cfg.Time.Sleep(ctx, s.cfg.Grace)", "s.cfg.Time.Sleep(ctx, 1)"}},
	},
	{
		name: "a slot made in a store wiped meanwhile is used", regime: sim.Reasserted,
		edits: []edit{{"lease/claim.go", "		return s.samePool(ctx, pool)\n", "		return nil\n"}},
	},
	{
		name: "a worker that nobody knows of begins at the first tick", regime: sim.Reasserted,
		edits: []edit{{"lease/claim.go", "after = max(after, min(ask.From-1, ask.Now+firn.Tick(s.cfg.Tolerance/s.cfg.Layout.Unit())))", "after = max(after, -1)"}},
	},
	{
		name: "holders do not write anew what vanished", regime: sim.Reasserted,
		edits: []edit{{"lease/holding.go", "return s.reassert(ctx, worker, h)", "return nil"}},
	},
	{
		name: "who finds its ticks granted to another goes on", regime: sim.Reasserted,
		edits: []edit{{"lease/lease.go", "if errors.Is(cause, ErrOverlap) {", "if cause == nil {"}},
	},
	{
		name: "re-assertion does not compare", regime: sim.Reasserted,
		harmless: "within the grace there is nobody to compare with; in a strict pool the other looks before it begins",
		edits: []edit{{
			"lease/holding.go", "	revision, err := s.write(ctx, worker, 0, h, false)\n",
			"	there, err := s.cfg.Store.Get(ctx, slotKey(s.cfg.Pool, s.cfg.Layout, s.cfg.Datacenter, worker))\n" +
				"	if err != nil {\n		there.Revision = 0\n	}\n" +
				"	revision, err := s.write(ctx, worker, there.Revision, h, false)\n",
		}},
	},
	{
		name: "a strict claim does not wait", regime: sim.Strict,
		edits: []edit{{"lease/strict.go", "s.cfg.Time.Sleep(ctx, s.cfg.Strict)", "s.cfg.Time.Sleep(ctx, 1)"}},
	},
	{
		name: "a strict claim is not looked at after its wait", regime: sim.Strict,
		edits: []edit{{"lease/strict.go", "if entry.Revision != h.revision { // 0 if it is gone\n		s.forget", "if entry.Revision == -1 && h.fence == 0 {\n		s.forget"}},
	},
	{
		name: "a strict claim that vanished is written anew", regime: sim.Strict,
		edits: []edit{{"lease/strict.go", "	if entry.Revision != h.revision { // 0 if it is gone\n		s.forget(held.Worker, held.After)\n", "	if entry.Revision == 0 {\n		return s.reassert(ctx, held.Worker, h)\n	}\n	if entry.Revision != h.revision {\n		s.forget(held.Worker, held.After)\n"}},
	},
	{
		name: "a strict holder goes on after its fence", regime: sim.Strict, slow: true,
		edits: []edit{{"lease/strict.go", "	if s.cfg.Strict == 0 {\n		return nil\n	}\n	if now", "	if s.cfg.Strict >= 0 {\n		return nil\n	}\n	if now"}},
	},
	{
		name: "a strict claim that came late reaches further than newcomers wait", regime: sim.Strict,
		edits: []edit{{"lease/claim.go", "if s.cfg.Strict > 0 { // see bounded", "if s.cfg.Strict < 0 { // see bounded"}},
	},
	{
		name: "a strict claim begins at what it found, not after its wait", regime: sim.Strict,
		edits: []edit{
			{"lease/claim.go", "		after = max(after, outwaited)\n", "		_ = outwaited\n"},
			{"lease/claim.go", "		if grant.After < waited-1 {\n", "		if grant.After < -1 {\n"},
		},
	},
	{
		name: "who may count no further ahead waits for a time that is over", regime: sim.Durable,
		edits: []edit{{"core.go", "c.layout.nanos(max(now+1, tick-c.chain.find(policyAhead).ticks))", "c.layout.nanos(tick - c.chain.find(policyAhead).ticks)"}},
	},
}
