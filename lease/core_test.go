package lease

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// easy are rules whose numbers are easily added: ticks of a millisecond, a tolerance of 10.
func easy() *rules {
	return &rules{layout: layout("20/0/4/8"), token: "me", tolerance: 10 * time.Millisecond, grace: 12 * time.Second}
}

// strictly are the same in a pool whose claims wait for 1000: margin 40, reach 958.
func strictly() *rules {
	r := easy()
	r.strict = time.Second
	return r
}

// verdict says in a word what the rules decided.
func verdict(m move, err error) string {
	switch {
	case errors.Is(err, ErrOverlap) && errors.Is(err, ErrLost):
		return "overlap"
	case errors.Is(err, ErrLost):
		return "lost"
	case errors.Is(err, errAgain):
		return "changed"
	case err != nil:
		return err.Error()
	}
	what := "nothing"
	if m.write {
		what = fmt.Sprintf("(%d,%d]", m.after, m.fence)
	}
	if m.free {
		what += " free"
	}
	if m.taken {
		what += " taken"
	}
	if m.gone {
		what += " gone"
	}
	if m.forgot {
		what += ", alarm"
	}
	return what
}

// What a holder of (100, 200], claimed over revision 7, does about what it finds.
func TestAHolderKeepsWhatWasConfirmed(t *testing.T) {
	slot := func(owner string, after, fence firn.Tick) *Slot {
		return &Slot{Owner: owner, After: after, Fence: fence, revision: 8}
	}
	given := func(s *Slot) *Slot { s.Free = true; return s }
	gone := slot("operator", 200, 200)
	gone.Free, gone.Taken, gone.Gone = true, true, true
	before := slot("other", 10, 50)
	before.revision = 7
	old := slot("other", noFence, 50)
	old.revision = 7
	for name, c := range map[string]struct {
		found     *Slot
		now, wish firn.Tick
		want      string
	}{
		"as it should be":                                        {slot("me", 100, 200), 150, 200, "nothing"},
		"a wish for less":                                        {slot("me", 100, 200), 150, 199, "nothing"},
		"a wish for more":                                        {slot("me", 100, 200), 150, 201, "(100,201]"},
		"a wish for more, at the fence":                          {slot("me", 100, 200), 200, 201, "(100,201]"},
		"a wish for more, after the fence":                       {slot("me", 100, 200), 201, 950, "lost"},
		"no wish for more, after the fence":                      {slot("me", 100, 200), 201, 200, "nothing"},
		"an earlier renewal went further":                        {slot("me", 100, 300), 150, 250, "(100,300]"},
		"an earlier renewal went further, and no renewal is due": {slot("me", 100, 300), 150, 200, "nothing"},
		"as before the claim, of a version that had no after":    {old, 150, 200, "(100,200], alarm"},
		"gone":                                      {nil, 150, 200, "(100,200], alarm"},
		"gone, with a wish":                         {nil, 150, 300, "(100,200], alarm"},
		"gone, at the fence":                        {nil, 200, 200, "(100,200], alarm"},
		"gone, after the fence":                     {nil, 201, 200, "overlap"},
		"as before the claim":                       {before, 150, 200, "(100,200], alarm"},
		"as before the claim, after the fence":      {before, 201, 200, "overlap"},
		"an earlier fence":                          {slot("me", 100, 199), 150, 200, "(100,200], alarm"},
		"an earlier fence, after the fence":         {slot("me", 100, 199), 201, 300, "overlap"},
		"an earlier claim":                          {slot("me", 99, 250), 150, 200, "(100,200], alarm"},
		"an earlier claim that was given back":      {given(slot("me", 99, 250)), 150, 200, "(100,200], alarm"},
		"a later claim":                             {slot("me", 101, 250), 150, 200, "lost"},
		"a later claim that reaches less far":       {slot("me", 101, 150), 150, 200, "lost"},
		"given back here":                           {given(slot("me", 100, 150)), 150, 200, "lost"},
		"another's, after the fence":                {slot("other", 200, 300), 250, 200, "lost"},
		"another's, after the fence, at it":         {slot("other", 200, 300), 200, 200, "lost"},
		"another's, below the fence":                {slot("other", 199, 300), 150, 200, "overlap"},
		"another's, below the fence, after it":      {slot("other", 199, 300), 250, 200, "overlap"},
		"another's, of a version that had no after": {slot("other", noFence, 300), 150, 200, "lost"},
		"taken back":                                {given(slot("other", 200, 200)), 150, 200, "lost"},
		"taken back at the fence, as of one gone":   {gone, 150, 200, "lost"},
		"given back by another, below the fence":    {given(slot("other", 199, 250)), 150, 200, "overlap"},
	} {
		h := holding{worker: 3, after: 100, fence: 200, over: 7}
		m, err := easy().stand(h, c.found, c.now, c.wish, false)
		if got := verdict(m, err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		// Who was forgotten, and looks too late, ends: another may have been forgotten since.
		want := strings.Replace(c.want, "(100,200], alarm", "overlap", 1)
		if want == "lost" && c.now <= h.fence && (c.found.Free || c.found.Owner != "me") {
			want = "overlap"
		}
		if late := verdict(easy().stand(h, c.found, c.now, c.wish, true)); late != want {
			t.Errorf("%s, too late: %s, or %s", name, late, c.want)
		}
		if err == nil && !m.write && m.fence != h.fence {
			t.Errorf("%s: it goes on up to %d, which was read and not confirmed", name, m.fence)
		}
	}
}

// The error of a loss names the new holder, if there is one, and the ticks in question.
func TestALossNamesItsCause(t *testing.T) {
	h := holding{worker: 3, after: 100, fence: 200, over: 7}
	for want, found := range map[string]*Slot{
		"taken by process 47 on db1": {Owner: "other", PID: 47, Host: "db1", After: 200, Fence: 300, revision: 8},
		"taken by process other":     {Owner: "other", After: 200, Fence: 300, revision: 8},
		"claimed by process other from tick 121 on, and is held here up to tick 200":                                 {Owner: "other", After: 120, Fence: 300, revision: 8},
		"claimed again here from tick 151 on":                                                                        {Owner: "me", After: 150, Fence: 300, revision: 8},
		"an operator took it back at tick 120, as that of a holder that is gone, and it is held here up to tick 200": {Owner: "other", Free: true, Taken: true, Gone: true, After: 120, Fence: 120, revision: 8},
		"taken back, or given back by another":                                                                       {Owner: "other", Free: true, After: 200, Fence: 200, revision: 8},
	} {
		for _, now := range []firn.Tick{150, 250} {
			for _, late := range []bool{false, strings.Contains(want, "is held here up to")} { // an overlap has the same cause however late it is found
				if _, err := easy().stand(h, found, now, 200, late); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v: want %s (late: %t)", err, want, late)
				}
			}
		}
	}
}

// What a holder of (100, 200] that used 150 at last writes as it leaves.
func TestAReleaseRecordsTheLastTickUsed(t *testing.T) {
	slot := func(owner string, after, fence firn.Tick, free bool) *Slot {
		return &Slot{Owner: owner, After: after, Fence: fence, Free: free, revision: 8}
	}
	for name, c := range map[string]struct {
		found *Slot
		last  firn.Tick
		want  string
	}{
		"its own":                                  {slot("me", 100, 200, false), 150, "(100,150] free"},
		"its own, to the end":                      {slot("me", 100, 200, false), 200, "(100,200] free"},
		"never beyond its fence":                   {slot("me", 100, 200, false), 250, "(100,200] free"},
		"its own, given back by a try before":      {slot("me", 100, 150, true), 150, "(100,150] free"},
		"its own, an older copy":                   {slot("me", 100, 199, false), 150, "(100,150] free, alarm"},
		"an earlier claim here":                    {slot("me", 99, 250, false), 150, "(100,150] free, alarm"},
		"a later claim here":                       {slot("me", 101, 250, false), 150, "nothing free"},
		"a later claim here that reaches less far": {slot("me", 101, 140, false), 150, "nothing free"},
		"gone":                                      {nil, 150, "(100,150] free, alarm"},
		"another's, after the fence":                {slot("other", 200, 300, false), 150, "nothing free"},
		"another's, after what was used":            {slot("other", 150, 300, false), 150, "nothing free, alarm"},
		"another's, below what was used":            {slot("other", 149, 300, false), 150, "(100,300] free taken, alarm"},
		"another's, that says less":                 {slot("other", 10, 149, false), 150, "(100,150] free taken, alarm"},
		"another's, of a version without after":     {slot("other", noFence, 150, false), 150, "nothing free"},
		"given back by another, above what is used": {slot("other", 149, 150, true), 150, "nothing free, alarm"},
		"given back by another, below what is used": {slot("other", 120, 149, true), 150, "(100,150] free, alarm"},
		"taken back of another, below what is used": {&Slot{Owner: "operator", After: 149, Fence: 149, Free: true, Taken: true, revision: 8}, 150, "(100,150] free taken, alarm"},
	} {
		h := holding{worker: 3, after: 100, fence: 200, over: 7}
		if got := verdict(easy().leave(h, c.found, 200, c.last), nil); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		// After the fence nothing is written, unless the store has less than it had confirmed.
		if !strings.Contains(c.want, "alarm") {
			c.want = "nothing free"
		}
		if got := verdict(easy().leave(h, c.found, 201, c.last), nil); got != c.want {
			t.Errorf("%s, after the fence: %s, want %s", name, got, c.want)
		}
	}
	// An embedded store forgets nothing, so the release is written however late it comes.
	trusting := easy()
	trusting.trusting = true
	if got := verdict(trusting.leave(holding{worker: 3, after: 100, fence: 200, over: 7}, slot("me", 100, 200, false), 201, 150), nil); got != "(100,150] free" {
		t.Errorf("in an embedded store, after the fence: %s", got)
	}
}

// A claim of (100, 200] that was not used leaves the slot as it was found.
func TestAnUnusedClaimIsUndone(t *testing.T) {
	h := holding{worker: 3, after: 100, fence: 200, over: 7}
	mine := Slot{Owner: "me", After: 100, Fence: 200, revision: 8}
	held, free := Slot{Fence: 50, revision: 7}, Slot{Fence: 50, Free: true, revision: 7}
	other, earlier, given := mine, mine, mine
	other.Owner, earlier.After, given.Free = "other", 99, true
	for name, c := range map[string]struct {
		found  *Slot
		before Slot
		want   string
	}{
		"of a slot never given back": {&mine, held, "(100,50]"},
		"of a slot given back":       {&mine, free, "(100,50] free"},
		"of a slot taken back":       {&mine, Slot{Fence: 50, Free: true, Taken: true, revision: 7}, "(100,50] free taken"},
		"of a slot of one gone":      {&mine, Slot{Fence: 50, Free: true, Taken: true, Gone: true, revision: 7}, "(100,50] free taken gone"},
		"of a slot never used":       {&mine, Slot{Fence: -1}, "(100,-1] free"},
		"that is not there":          {nil, free, "nothing free"},
		"that is another's":          {&other, free, "nothing free"},
		"that is another of ours":    {&earlier, free, "nothing free"},
		"that was undone":            {&given, free, "nothing free"},
	} {
		if got := verdict(easy().unclaim(h, c.found, c.before), nil); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A release that was applied, and whose answer was lost, is tried again when another may have the worker.
func TestAGrantAfterATriedReleaseIsNoLossOfTheStore(t *testing.T) {
	h := holding{worker: 3, after: 100, fence: 200, over: 7}
	other := &Slot{Owner: "other", After: 150, Fence: 300, revision: 9}
	for _, c := range []struct {
		given bool
		last  firn.Tick
		want  string
	}{{false, 150, "nothing free, alarm"}, {true, 150, "nothing free"}, {true, 151, "(100,300] free taken, alarm"}} {
		h.given = c.given
		if got := verdict(easy().leave(h, other, 160, c.last), nil); got != c.want {
			t.Errorf("tried %v, last %d: %s, want %s", c.given, c.last, got, c.want)
		}
	}
	h.given = true
	older := &Slot{Owner: "me", After: 100, Fence: 199, revision: 8}
	if got := verdict(easy().leave(h, older, 160, 100), nil); got != "(100,100] free, alarm" {
		t.Errorf("an older copy of its own slot, after a release of an unused worker was tried: %s", got)
	}
}

// A former holder that the store has forgotten ran ahead of its clock as far as the process that asks may, or by its policy.
func TestTheLeadOfAFormerHolder(t *testing.T) {
	for _, c := range []struct {
		policy    firn.Tick
		now, from firn.Tick
		want      firn.Tick
	}{
		{0, 100, 101, 0},
		{0, 100, 104, 3},
		{0, 100, 91, -10}, // a virtual clock that is behind
		{0, 100, 150, 10}, // the tolerance
		{1, 100, 91, 1},
		{7, 100, 101, 7},
		{7, 100, 91, 7},
		{7, 100, 109, 8},
		{7, 100, 108, 7},
		{20, 100, 101, 10},
	} {
		r := easy()
		r.policyLead = c.policy
		if got := r.lead(Ask{Now: c.now, From: c.from}); got != c.want {
			t.Errorf("at %d it asks from %d, and the policy has %d: %d, want %d", c.now, c.from, c.policy, got, c.want)
		}
	}
}

func TestAClaimBeginsAboveAllThatMayHaveBeenUsed(t *testing.T) {
	trusting := easy()
	trusting.trusting = true
	used, unused := Slot{Worker: 3, Fence: 500, revision: 7}, Slot{Worker: 3, Fence: -1}
	end := firn.Tick(1<<20 - 1)
	for name, c := range map[string]struct {
		r     *rules
		slot  Slot
		ask   Ask
		above firn.Tick
		want  string
	}{
		"after the fence found":                          {easy(), used, Ask{Now: 1000, From: 1000, Window: 100}, -1, "(500,1100]"},
		"above what the pool says":                       {easy(), used, Ask{Now: 1000, From: 1000, Window: 100}, 501, "(501,1100]"},
		"beyond the present":                             {easy(), used, Ask{Now: 1000, From: 1000, Window: 100}, 2000, "(2000,2101]"},
		"with a lead":                                    {easy(), used, Ask{Now: 1000, From: 1006, Window: 100}, -1, "(500,1106]"},
		"ahead of its fence":                             {easy(), used, Ask{Now: 400, From: 400, Window: 100}, -1, "(500,601]"},
		"of a worker that no slot names":                 {easy(), unused, Ask{Now: 1000, From: 1006, Window: 100}, -1, "(1005,1106]"},
		"by who runs ahead far":                          {easy(), unused, Ask{Now: 1000, From: 1900, Window: 100}, -1, "(1010,2000]"},
		"of a worker that no slot names, trusted":        {trusting, unused, Ask{Now: 1000, From: 1006, Window: 100}, -1, "(1004,1106]"},
		"of one that this process has had in this tick":  {trusting, unused, Ask{Now: 1000, From: 1000, Window: 100}, 1000, "(1000,1101]"},
		"of a slot whose fence is the first tick":        {easy(), Slot{Fence: 0, revision: 7}, Ask{Now: 1000, From: 1006, Window: 100}, -1, "(0,1106]"},
		"up to the end of the layout":                    {easy(), used, Ask{Now: end - 50, From: end - 50, Window: 100}, -1, fmt.Sprintf("(500,%d]", end)},
		"of the last tick":                               {easy(), used, Ask{Now: end - 1, From: end, Window: 100}, end - 1, fmt.Sprintf("(%d,%d]", end-1, end)},
		"of no tick":                                     {easy(), used, Ask{Now: end - 1, From: end, Window: 100}, end, "no grant"},
		"strict: after the wait":                         {strictly(), used, Ask{Now: 1000, From: 1000, Window: 100}, -1, "(2011,2112]"},
		"strict: above what is known":                    {strictly(), used, Ask{Now: 1000, From: 1000, Window: 100}, 2500, "(2500,2601]"},
		"strict: no further than newcomers wait":         {strictly(), used, Ask{Now: 1000, From: 1000, Window: 2000}, -1, "(2011,2969]"},
		"strict: nor by a tick beyond, as one reach":     {strictly(), used, Ask{Now: 1000, From: 1000, Window: 957}, -1, "(2011,2969]"},
		"strict: of a worker that no slot names as well": {strictly(), unused, Ask{Now: 1000, From: 1006, Window: 100}, -1, "(2011,2112]"},
	} {
		h, err := c.r.claim(c.slot, c.ask, c.above)
		got := fmt.Sprintf("(%d,%d]", h.after, h.fence)
		if e := (*firn.TimeExhaustedError)(nil); errors.As(err, &e) && e.Layout == c.r.layout && e.End.Equal(e.Layout.End()) {
			got = "no grant"
		}
		if got != c.want || err == nil && (h.worker != c.slot.Worker || h.over != c.slot.revision) {
			t.Errorf("%s: %s (%v, %+v), want %s", name, got, err, h, c.want)
		}
	}
}

func TestClaimsOfAPoolThatWasOpenedBeginAboveWhatIsForgotten(t *testing.T) {
	for _, c := range []struct{ from, lead, want firn.Tick }{
		{0, -7, 1000}, {0, 0, 1000}, {0, 5, 1000}, {1, -7, 0}, {900, -7, 899}, {900, -1, 899}, {900, 0, 900}, {900, 5, 905}, {900, 10, 910}, {900, 11, 910},
	} {
		p := Pool{From: c.from}
		if got := easy().above(p, Ask{Now: 1000, From: 1001 + c.lead}); got != c.want {
			t.Errorf("from %d with a lead of %d: above %d, want %d", c.from, c.lead, got, c.want)
		}
	}
	trusting := easy()
	trusting.trusting = true
	if got := trusting.above(Pool{}, Ask{Now: 1000, From: 1006}); got != -1 {
		t.Errorf("a store that keeps what it confirmed: above %d", got)
	}
}

// A claim of (2001, 2100] in a strict pool that was waited for.
func TestAStrictClaimMustBeAsItWasAfterItsWait(t *testing.T) {
	mine := Slot{Owner: "me", After: 2001, Fence: 2100, revision: 8}
	other, moved, given := mine, mine, mine
	other.Owner, moved.After, given.Free = "other", 2002, true
	ask := Ask{Now: 1000, From: 1000, Window: 100}
	for name, c := range map[string]struct {
		found *Slot
		now   firn.Tick
		ask   Ask
		want  string
	}{
		"as it was":                     {&mine, 2000, ask, "(2001,2102]"},
		"later":                         {&mine, 2500, Ask{Now: 2500, From: 2500, Window: 100}, "(2499,2600]"},
		"at its beginning":              {&mine, 2002, ask, "(2001,2102]"},
		"a tick later":                  {&mine, 2003, ask, "(2002,2103]"},
		"with too long a window":        {&mine, 2001, Ask{Now: 2001, From: 2001, Window: 5000}, "(2001,2959]"},
		"by a clock that is far behind": {&mine, 1000, ask, "(2001,2001]"},
		"gone":                          {nil, 2000, ask, "changed"},
		"another's":                     {&other, 2000, ask, "changed"},
		"another of ours":               {&moved, 2000, ask, "changed"},
		"given back":                    {&given, 2000, ask, "changed"},
	} {
		m, err := strictly().outwaited(holding{worker: 3, after: 2001, fence: 2100, over: 7}, c.found, c.now, c.ask)
		if got := verdict(m, err); got != c.want || err == nil && (m.worker != 3 || m.over != 7) {
			t.Errorf("%s: %s of worker %d, want %s", name, got, m.worker, c.want)
		}
	}
}

// The bounds of a strict pool, each with the last value on either side. A pool that is not
// strict has no bounds.
func TestTheBoundsOfAStrictPool(t *testing.T) {
	r, loose := strictly(), easy()
	if got := r.reach(); got != 958 {
		t.Errorf("a fence may lie %d ahead", got)
	}
	short := strictly()
	short.strict = 41 * time.Millisecond // less than its margin and the rounding
	if got := short.reach(); got != 0 {
		t.Errorf("with a short wait it may lie %d ahead", got)
	}
	for fence, want := range map[firn.Tick]firn.Tick{1957: 1957, 1958: 1958, 1959: 1958} {
		if got := r.bounded(fence, 1000); got != want {
			t.Errorf("%d is bounded to %d, want %d", fence, got, want)
		}
	}
	if got := loose.bounded(1<<19, 1000); got != 1<<19 {
		t.Errorf("bounded to %d", got)
	}
	if !r.ended(1041, 1000) || r.ended(1042, 1000) || loose.ended(0, 1000) {
		t.Error("a holder ends a margin and a tick before its fence")
	}
	least := r.ticks(r.strict+r.tolerance+r.margin()) + 2 + r.reach()
	if r.beyond(1000+least, 1000) || !r.beyond(1001+least, 1000) || loose.beyond(1<<19, 1000) {
		t.Error("a fence beyond all that a claim may wait for is refused")
	}
	for _, wait := range []time.Duration{1, 42 * time.Millisecond} {
		short.strict = wait // any wait at all makes a pool strict
		if short.bounded(5000, 1000) != 1000 || !short.ended(1041, 1000) || !short.beyond(2000, 1000) {
			t.Errorf("a wait of %v sets no bounds", wait)
		}
		h, err := short.claim(Slot{Fence: 500, revision: 7}, Ask{Now: 1000, From: 1000, Window: 100}, -1)
		if least := 1001 + short.ticks(wait+short.tolerance); err != nil || h.after != least || h.fence != least {
			t.Errorf("a wait of %v: a claim of (%d,%d], %v", wait, h.after, h.fence, err)
		}
	}
	if h := (holding{after: 100, fence: 1041}); verdict(r.stand(h, &Slot{Owner: "me", After: 100, Fence: 1041}, 1000, 1958, false)) != "lost" {
		t.Error("a holder goes on within the margin of its fence")
	}
}

func TestAStrictWaitCoversWindowLeadAndMargin(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		window, lead time.Duration
		want         string
	}{
		{163 * ms, 0, "window"}, {164 * ms, 0, ""}, {164 * ms, 794 * ms, ""}, {164 * ms, 795 * ms, "strict wait"},
		{958 * ms, 0, ""}, {959 * ms, 0, "strict wait"}, {maxWindow + 1, 0, "window"},
	} {
		err := strictly().covers(c.window, c.lead)
		if r := (*firn.RangeError)(nil); errors.As(err, &r) != (c.want != "") || r != nil && r.What != c.want {
			t.Errorf("window %v, lead %v: %v, want one of the %q", c.window, c.lead, err, c.want)
		}
	}
}

func TestAGrantReachesAWindowBeyondWhatIsAsked(t *testing.T) {
	l := layout("20/0/4/8")
	for _, c := range []struct {
		ask         Ask
		after, want firn.Tick
	}{
		{Ask{Now: 10, From: 5, Window: 100}, -1, 110},
		{Ask{Now: 5, From: 10, Window: 100}, -1, 110},
		{Ask{Now: 5, From: 5, Window: 100}, 9, 110},
		{Ask{From: l.MaxTick() - 100, Window: 100}, -1, l.MaxTick()},
		{Ask{From: l.MaxTick() - 101, Window: 100}, -1, l.MaxTick() - 1},
		{Ask{From: l.MaxTick() - 1, Window: 100}, -1, l.MaxTick()},
	} {
		if got := c.ask.fence(c.after, l); got != c.want {
			t.Errorf("%+v after %d: up to %d, want %d", c.ask, c.after, got, c.want)
		}
	}
}

// Ticks of the default lead are ahead of the clock too, though no setting names it.
func TestALeadBeyondTheToleranceIsRefused(t *testing.T) {
	policy := firn.Config{Layout: easy().layout, Clock: firn.ClockWall, Ahead: time.Millisecond, Rollback: firn.Rollback{firn.RunAhead(11)}}
	if e := (*firn.RangeError)(nil); !errors.As(easy().counted(policy), &e) || e.Field != "Rollback" {
		t.Errorf("the policy's: %v", easy().counted(policy))
	}
	policy.Ahead = 10 * time.Millisecond // all of the tolerance, of which nothing is left for the policy
	if e := (*firn.RangeError)(nil); fencedLead(policy) != easy().tolerance || !errors.As(easy().counted(policy), &e) || e.Field != "Rollback" {
		t.Errorf("the policy's, with a lead of %v: %v", fencedLead(policy), easy().counted(policy))
	}
	tiny := easy()
	tiny.tolerance = time.Millisecond // less than what a steady clock alone may be ahead
	if e := (*firn.RangeError)(nil); !errors.As(tiny.counted(firn.Config{Layout: tiny.layout, Ahead: time.Nanosecond}), &e) || e.Max != "0s" {
		t.Errorf("no lead is allowed: %+v", e)
	}
	for ahead, want := range map[time.Duration]bool{-1: true, 0: false, time.Millisecond: true, 11 * time.Millisecond: false} {
		err := easy().counted(firn.Config{Layout: easy().layout, Ahead: ahead})
		if e := (*firn.RangeError)(nil); (err == nil) != want || err != nil && (!errors.As(err, &e) || e.Field != "Ahead") {
			t.Errorf("ahead %v: %v", ahead, err)
		}
	}
}
