/* The lease protocol of Firn as a model for Spin. See README.md.
 *
 * Processes hand out ticks of workers; no tick of a worker may be issued
 * twice. Everything else tries to break this.
 *
 *   -DSTEPS          clocks are independent of each other and step both ways
 *   -DWIPE           the store may be wiped     -DRESTORE  or set back to a copy
 *   -DGRACE          a new pool grants nothing for two units of time, and holders look within one
 *   -DSTRICT         a claim waits a window, and looks, before it is used
 *   -DPAUSED         with GRACE: holders look at any time
 *   -DM_...          a guard removed        -DREACH_... a state that must be reached
 */
#ifndef NP
#define NP 2            /* processes */
#endif
#ifndef NS
#define NS 2            /* slots, that is workers */
#endif
#ifndef T
#define T 6             /* the last tick */
#endif
#ifndef W
#define W 2             /* the window */
#endif
#ifdef M_WAIT_TOO_SHORT
#define WAIT W
#else
#define WAIT (W + 1)    /* of a strict claim */
#endif
#ifndef WRITES
#define WRITES 6        /* writes tried, successful or not */
#endif
#ifndef LOSSES
#define LOSSES 1        /* how often the store loses data */
#endif
#define NONE NS

typedef Slot { bit there; byte fence; byte own; byte rev }

Slot store[NS];
byte real = 1;           /* the true time */
byte draw = 1;          /* the next revision: never used twice, whatever the store loses */
byte pool = 1;          /* the pool's record: its life, or 0 without a record */
byte lives = 1;
bit granting = 1;           /* the pool grants workers */
bit used[NS * (T + 1)]; /* issued ticks */

#if defined(WIPE) || defined(RESTORE)
byte losses = 0;
#endif
#ifdef RESTORE
Slot copy[NS];
bit copied = 0;
#endif

#ifdef GRACE
byte made;               /* when the pool was created */
#define MADE made = real
bit holds[NP], looked[NP]; /* processes that hold a slot, and have looked at it since the store lost data */
#define HOLD(x) holds[id] = x
#ifndef PAUSED /* half the grace does not pass before every living holder has looked */
#define PROMPT (pool == 0 || real == made || (!(holds[0] && !looked[0]) && !(holds[1] && !looked[1])))
#else
#define PROMPT true
#endif
#define LOOKED looked[id] = 1
#else
#define MADE skip
#define PROMPT true
#define HOLD(x) skip
#define LOOKED skip
#endif

/* A write whose answer was lost and which may be applied later. */
bit latePending = 0;
Slot late; byte lateSlot, lateRev; bit lateThere;

#define MATCHES(k, t, r) (store[k].there == (t) && (!(t) || store[k].rev == (r)))
/* Read a clock into c: any time, or the true time. */
#ifdef STEPS
#define READ_CLOCK select (c : 1 .. T)
#define LEAD true       /* ids may run ahead of the clock as far as the fence */
#else
#define READ_CLOCK c = real
#define LEAD t <= c
#endif

/* One compare-and-swap of slot k, from (t, r) to fence f. result: 1 applied, 0
 * not applied, 2 the answer was lost and reading does not show it. w is its revision. */
inline swap(k, t, r, f, blind) {
	d_step { w = draw; draw++ }
	if
	:: atomic {
		if
		:: MATCHES(k, t, r) || blind ->
			store[k].there = 1; store[k].fence = f; store[k].own = me; store[k].rev = w; result = 1
		:: !(MATCHES(k, t, r) || blind) -> result = 0
		fi
	   }
	:: atomic { /* applied, if it matches, and the answer lost */
		if
		:: MATCHES(k, t, r) || blind -> store[k].there = 1; store[k].fence = f; store[k].own = me; store[k].rev = w
		:: else
		fi;
		result = 2
	   }
	:: atomic { /* lost on the way, or late */
		if
		:: !latePending ->
			latePending = 1; late.fence = f; late.own = me; lateSlot = k; lateRev = r; lateThere = t; late.rev = w
		:: true
		fi;
		result = 2
	   }
	fi;
#ifdef M_LOST_IS_YES
	if
	:: result == 2 -> result = 1
	:: else
	fi
#endif
}

inline leave() { s = NONE; HOLD(0); fence = 0; rev = 0; pos = 0 }

/* Look at the slot held: it is ours, or is written again, or is left. */
inline examine() {
	atomic { seen = store[s].there; so = store[s].own; sr = store[s].rev; READ_CLOCK;
#ifdef M_NO_REASSERT
		LOOKED
#else
		if
		:: seen && so == me -> LOOKED
		:: else
		fi
#endif
	}
	if
#if defined(STRICT) && !defined(M_RENEW_PASSED)
	:: fence <= c -> leave()
#endif
	:: seen && so != me -> leave()
	:: seen && so == me -> rev = sr
#ifdef M_NO_REASSERT
	:: !seen -> skip
#else
#ifndef M_REASSERT_PASSED
	:: !seen && fence < c -> leave()
	:: !seen && fence >= c ->
#else
	:: !seen ->
#endif
#ifdef REACH_REASSERT
		assert(false);
#endif
#ifdef M_REASSERT_BLIND
		swap(s, 0, 0, fence, 1);
#else
		swap(s, 0, 0, fence, 0);
#endif
		if
		:: result == 1 ->
			atomic { rev = w; LOOKED; /* also create the pool, not open yet, if it is gone too */
				if
				:: pool == 0 -> lives++; pool = lives; MADE
				:: else
				fi
			}
		:: else
		fi
#endif
	fi
}

proctype Process(byte id) {
	byte me = id + 1;
	byte s = NONE, fence, rev, pos;         /* the slot held, and our interval */
	byte c, k, rf, rr, start, f, result, w, so, sr, t, joined;
	bit rt, seen;
	leave();
end:	atomic { c = 0; k = 0; rf = 0; rr = 0; start = 0; f = 0; result = 0; w = 0; so = 0; sr = 0; t = 0; joined = 0; rt = 0; seen = 0 };
	do
	:: atomic { s == NONE && draw <= WRITES -> /* claim: read */
		READ_CLOCK; select (k : 0 .. NS - 1);
		joined = pool;
		rt = store[k].there; rr = store[k].rev;
		rf = (rt -> store[k].fence : 0);
		if
#ifndef M_TAKE_AHEAD
		:: rf >= c -> goto end
		:: else
#else
		:: true
#endif
		fi;
#ifdef GRACE
		if
		:: joined == 0 -> /* create the pool */
			lives++; pool = lives; made = real; goto end
		:: joined != 0 && !granting -> /* wait out the grace */
#ifndef M_NO_GRACE
			if
			:: real < made + 2 -> goto end /* the grace takes time */
			:: else
			fi;
			granting = 1; goto end
#else
			skip
#endif
		:: joined != 0 && granting
		fi;
#endif
#ifdef M_TAKE_AHEAD
		start = c - 1;
#else
		start = rf;
#endif
#if defined(STRICT) && !defined(M_NO_WAIT)
		start = (real + WAIT > start -> real + WAIT : start);
#endif
		f = (c > start + 1 -> c : start + 1) + W;
#ifdef M_AFTER_OFF_BY_ONE
		start = (start > 0 -> start - 1 : 0);
#endif
		if
		:: f > T -> goto end
		:: else
		fi;
		HOLD(1); LOOKED }; /* from here on it will look within the grace */
#ifdef M_BLIND_CLAIM
		swap(k, rt, rr, f, 1);
#else
		swap(k, rt, rr, f, 0);
#endif
		if
		:: result == 1 ->
			atomic {
#if defined(STRICT) && !defined(M_NO_WAIT) && !defined(M_WAIT_FROM_READ)
				start = (real + WAIT > start -> real + WAIT : start); /* from the answer to the write */
#endif
				s = k; fence = f; rev = w; pos = start + 1 }
#if defined(STRICT) && !defined(M_NO_WAIT)
			atomic { real >= start; /* wait, and look */
#ifndef M_NO_LOOK
				if
				:: !(store[s].there && store[s].own == me) -> leave(); goto end
				:: else -> rev = store[s].rev
				fi
#endif
			};
#endif
#if defined(GRACE) && !defined(M_NO_POOL_CHECK)
			atomic {
				if
				:: !rt && (pool != joined) -> leave(); goto end /* created in a pool other than the one it read */
				:: else
				fi
			};
#endif
			goto end
		:: else -> HOLD(0); goto end /* conflict, or unknown: try another slot */
		fi
	:: atomic { s != NONE -> /* issue a tick */
		READ_CLOCK; t = (c > pos -> c : pos);
		if
#ifdef M_NO_FENCE
		:: t <= T && LEAD ->
#else
		:: t <= fence && LEAD ->
#endif
			assert(!used[s * (T + 1) + t]);
			used[s * (T + 1) + t] = 1;
			pos = t + 1
		:: else
		fi;
		goto end }
	:: atomic { s != NONE && draw <= WRITES -> /* renew */
		READ_CLOCK;
		f = (c > pos -> c : pos) + W;
		if
		:: f > T || f <= fence -> goto end
#if defined(STRICT) && !defined(M_RENEW_PASSED)
		:: f <= T && f > fence && fence <= c -> leave(); goto end
#endif
		:: else
		fi;
#ifdef M_EARLY_FENCE
		fence = f
#endif
		};
#ifdef M_BLIND_RENEW
		swap(s, 1, rev, f, 1);
#else
		swap(s, 1, rev, f, 0);
#endif
		if
		:: atomic { result == 1 -> fence = f; rev = w; goto end }
		:: result == 0 -> examine(); goto end
		:: result == 2 -> goto end /* unknown: the fence stays */
		fi
	:: s != NONE && draw <= WRITES -> examine(); goto end
	:: atomic { s != NONE && draw <= WRITES -> /* release */
#ifdef M_RELEASE_REMOVES
		if
		:: MATCHES(s, 1, rev) -> store[s].there = 0; store[s].fence = 0; store[s].own = 0; store[s].rev = 0
		:: else
		fi
		};
#else
#ifdef M_RELEASE_TOO_LOW
		f = (pos > 2 -> pos - 2 : 0)
#else
		f = (pos > 1 -> pos - 1 : 0)
#endif
		};
		swap(s, 1, rev, f, 0);
#ifdef M_RELEASE_RUNNING
		if
		:: result == 1 -> rev = w; goto end /* and the generator continues */
		:: true
		fi;
#endif
#endif
		atomic { me = (me > NP -> me : me + NP); leave(); goto end }
	:: atomic { s != NONE && me <= NP -> me = me + NP; leave(); goto end } /* crash, and come back as another */
	od
}

/* Events outside the protocol. */
active proctype World() {
	byte i;
end:	do
#ifndef STEPS
	:: real < T && PROMPT -> real++
#endif
	:: latePending -> atomic {
		if
		:: MATCHES(lateSlot, lateThere, lateRev) ->
			store[lateSlot].there = 1; store[lateSlot].fence = late.fence; store[lateSlot].own = late.own; store[lateSlot].rev = late.rev
		:: true
		fi;
		latePending = 0; late.fence = 0; late.own = 0; late.rev = 0; lateSlot = 0; lateRev = 0; lateThere = 0 }
#ifdef WIPE
	:: losses < LOSSES -> atomic { losses++;
		for (i : 0 .. NS - 1) { store[i].there = 0; store[i].fence = 0; store[i].own = 0; store[i].rev = 0 }
		
#ifdef GRACE
		pool = 0; granting = 0; looked[0] = 0; looked[1] = 0;
#endif
		i = 0 }
#endif
#ifdef RESTORE
	:: !copied -> atomic { copied = 1;
		for (i : 0 .. NS - 1) { copy[i].there = store[i].there; copy[i].fence = store[i].fence; copy[i].own = store[i].own; copy[i].rev = store[i].rev }
		i = 0 }
	:: copied && losses < LOSSES -> atomic { losses++;
		for (i : 0 .. NS - 1) { store[i].there = copy[i].there; store[i].fence = copy[i].fence; store[i].own = copy[i].own; store[i].rev = copy[i].rev }
#ifdef M_REVISIONS_COME_BACK
		draw = 2;
#endif
		i = 0 }
#endif
	od
}

init {
	byte i;
	atomic {
		for (i : 0 .. NP - 1) { run Process(i) }
	}
}
