/* A store that loses data, as a model for Spin. See README.md.
 *
 * The store is wiped, or set back to a copy. Holders look at their slots and write
 * missing ones again; newcomers must wait for them. Clocks are right, and answers
 * are not lost: lease.pml and fork.pml cover that.
 *
 *   -DLIFE       the store is wiped or set back, and begins a new life
 *   -DSAME       the store is wiped, and its life stays the same
 *   -DSILENT     a copy is put back, and the life stays the same
 *   -DYOUNG      with SILENT: also a copy in which a fence still lies ahead
 *   -DBETWEEN    with SILENT: also while a newcomer is between its list and its claim
 *   -DFIXED      the copy was taken earlier: each holder has written its slot since
 *   -DHELD=n     n processes hold a slot at the beginning
 *   -DPAUSED     holders look at any time
 *   -DTORN       a list shows some registers as they were at one moment, the others as at another
 *   -DM_...      a guard removed
 */
#ifndef NP
#define NP 2            /* processes */
#endif
#ifndef NS
#define NS 1            /* slots, that is workers */
#endif
#ifndef HELD
#define HELD 1
#endif
#ifndef T
#define T 7             /* the last tick */
#endif
#ifndef W
#define W 4             /* the window */
#endif
#ifndef WRITES
#define WRITES 6        /* after this many writes no claim or renewal begins */
#endif
#ifndef LOOK
#define LOOK 1          /* time between two looks, at most */
#endif
#ifndef CALL
#define CALL 0          /* how long all calls of one look take, at most */
#endif
/* A look that is under way when the store forgets may have read too early. So what it
 * still takes, the time to the next look, and all that one takes go by before a slot is
 * written again. */
#ifdef M_GRACE_WITHOUT_CALLS
#define GRACE (LOOK + 1)
#elif defined(M_GRACE_ONE_LOOK)
#define GRACE (LOOK + CALL + 1)
#else
#define GRACE (LOOK + 2 * CALL + 1)
#endif
#ifdef M_LOOK_ABOVE_POOLS
#define LOOKS (GRACE + 1) /* a holder whose look is longer than the grace allows for */
#else
#define LOOKS LOOK
#endif
#define NONE NS

/* free: released by its owner. write: the number of the slot's latest write. */
typedef Slot { bit there; bit free; byte fence; byte after; byte own; byte rev; byte write }
/* upto: fences up to this one have been waited for. */
typedef Pool { byte rev; byte life; bit open; byte upto }

Slot store[NS], copy[NS];
Pool pool, poolCopy;
byte real = 2;          /* the true time */
byte draw = 1;          /* the next revision: never used twice, whatever the store loses */
byte life = 1;          /* of the store */
bit lost = 0;           /* the store has lost data */
#ifdef FIXED
#define copied true
#define FIRST 2
#ifdef YOUNG
#define OLDER(k) (k == HELD - 1 -> 1 : W - 1)
#else
#define OLDER(k) 1
#endif
#else
bit copied = 0;
#define FIRST 1
#endif
bit used[NS];           /* the present tick has been issued */
bit did[NP];            /* and by which process */
byte slotOf[NP], fenceOf[NP]; /* ids are issued up to the fence, also during calls */
byte due[NP];           /* until when a process must have looked; 0: it holds nothing */
#if defined(SILENT) && !defined(BETWEEN)
bit joins[NP];
#define JOINS(x) joins[id] = x
#define JOINING (joins[0] || joins[1] || joins[NP - 1])
#else
#define JOINS(x) skip
#define JOINING false
#endif

#ifdef PAUSED
#define IN_TIME(p) true
#else
#define IN_TIME(p) (due[p] == 0 || real < due[p])
#endif

/* A holder whose fence has passed joins as a newcomer: another may have had the slot
 * since, and the store may have gone back to a copy in which it is still ours. */
#ifdef M_RENEW_PASSED
#define STANDS true
#else
#define STANDS (real <= FENCE)
#endif

inline put(to, from) {
	to.there = from.there; to.free = from.free; to.fence = from.fence; to.after = from.after;
	to.own = from.own; to.rev = from.rev; to.write = from.write
}
inline putPool(to, from) { to.rev = from.rev; to.life = from.life; to.open = from.open; to.upto = from.upto }
inline clear(x) { x.there = 0; x.free = 0; x.fence = 0; x.after = 0; x.own = 0; x.rev = 0; x.write = 0 }

/* Write slot k, if it still has the revision r (0: is not there). ok: applied, with revision rev. */
inline swap(at, old, owner, begin, end_, given, number) {
	if
	:: store[at].rev == old ->
		store[at].write = number; store[at].fence = end_; store[at].after = begin; store[at].own = owner;
		store[at].there = 1; store[at].free = given; store[at].rev = draw; draw++; ok = 1
	:: else -> ok = 0
	fi
}
inline swapPool(old, its, opened, waited) {
	if
	:: pool.rev == old -> pool.life = its; pool.open = opened; pool.upto = waited; pool.rev = draw; draw++
	:: else
	fi
}

/* Close the pool: newcomers wait the grace. */
inline close() {
	atomic { putPool(listed, pool); seen = (listed.rev == 0 -> life : listed.life) };
	atomic {
		if
		:: listed.rev == 0 || listed.open -> swapPool(listed.rev, seen, 0, listed.upto)
		:: else
		fi }
}

/* List a part of the registers: bit 0 is the pool, bit 1 the first slot. The clock is read once, when the
 * list begins. The tolerance of clocks, which is not modelled, covers lists longer than a tick. */
inline read(these) {
	if
	:: these & 1 -> putPool(listed, pool)
	:: else
	fi;
	for (f : 0 .. NS - 1) {
		if
		:: !((these >> (f + 1)) & 1)
		:: (these >> (f + 1)) & 1 ->
			if
			:: f == k -> put(found, store[f])
			:: else
			fi;
			if
			:: store[f].there && store[f].fence >= until -> ahead = 1
			:: store[f].there && store[f].fence < until && !store[f].free && store[f].fence > seen -> seen = store[f].fence
			:: else
			fi
		fi
	}
}

#define MINE slotOf[id]
#define FENCE fenceOf[id]
inline leave() { MINE = NONE; FENCE = 0; after = 0; rev = 0; own = 0; write = 0; due[id] = 0 }

proctype Process(byte id) {
	byte after, rev, own, write;     /* the slot held, as it was confirmed */
	Slot found;                             /* as it was read */
	Pool listed;
	byte k, f, seen, until;
#ifdef TORN
	byte part;
#endif
	bit ok, ahead;
	d_step {
		if
		:: id < HELD -> rev = 201 + MINE; own = 201 + MINE; write = FIRST
		:: else
		fi
	};
end:	atomic {
		clear(found); listed.rev = 0; listed.life = 0; listed.open = 0; listed.upto = 0;
		k = 0; f = 0; seen = 0; until = 0; ok = 0; ahead = 0; JOINS(0)
	};
	do
	:: atomic { MINE != NONE && draw <= WRITES && FENCE < real + W && STANDS -> /* renew */
		swap(MINE, rev, own, after, real + W, 0, write + 1);
		if
		:: ok -> FENCE = real + W; rev = store[MINE].rev; write++; due[id] = real + LOOKS; goto end
		:: else -> due[id] = real + CALL; goto look /* within the same look */
		fi }
#ifdef M_REFUSED_CLOCK
	:: atomic { MINE != NONE -> due[id] = real + LOOKS; goto end } /* the renewal is refused because of the clock, without other effects */
#endif
	:: atomic { MINE != NONE -> due[id] = real + CALL; goto look }

	:: atomic { MINE != NONE && draw <= WRITES -> /* release: the last issued tick is the present one or earlier */
		f = (did[id] -> real : real - 1);
		f = (f < FENCE -> f : FENCE);
		f = (f > after -> f : after);
		swap(MINE, rev, own, after, f, 1, write + 1);
		leave(); goto end }
	:: atomic { MINE != NONE -> leave(); goto end } /* crash, and come back as a newcomer */

	:: atomic { MINE == NONE && draw <= WRITES -> /* join: list the pool, and choose a slot */
		select (k : 0 .. NS - 1);
		until = real;
#ifdef TORN
		select (part : 0 .. (2 << NS) - 1);
		JOINS(1); read(part); goto others };
others:	atomic {
		JOINS(0); read((2 << NS) - 1 - part); part = 0;
#else
		read((2 << NS) - 1);
#endif
		f = 0;
		if
		:: listed.rev == 0 -> goto make
		:: listed.rev != 0 && listed.open && found.there && found.fence >= until -> goto end /* held: another slot, or later */
		:: listed.rev != 0 && !listed.open -> until = real + GRACE; goto wait
#ifndef M_NONE_AHEAD
		:: listed.rev != 0 && listed.open && !ahead && seen > listed.upto -> goto mark
		:: listed.rev != 0 && listed.open && !(found.there && found.fence >= until) && (ahead || seen <= listed.upto) -> JOINS(1); goto claim
#else
		:: listed.rev != 0 && listed.open && !(found.there && found.fence >= until) -> JOINS(1); goto claim
#endif
		fi }
	od;

make:	/* the pool has no record */
	atomic { swapPool(0, life, 0, 0); goto end };

mark:	/* no fence is ahead, and a process never left: close the pool, and wait */
	atomic { swapPool(listed.rev, listed.life, 0, seen); goto end };

wait:	/* the pool is not open: wait the whole grace, and open it */
	atomic {
#ifndef M_NO_GRACE
		real >= until;
#endif
		swapPool(listed.rev, listed.life, 1, listed.upto);
		goto end };

claim:	atomic {
		f = real + W;
		own = draw;
		swap(k, found.rev, own, found.fence, f, 0, found.write + 1);
		seen = life; /* as in the answer */
		if
		:: !ok -> own = 0; goto end
		:: else -> rev = store[k].rev; due[id] = real + CALL
		fi };
#ifndef M_NO_LIFE
	atomic {
		if
		:: seen != listed.life -> goto undo
		:: else
		fi };
#endif
#ifndef M_NO_POOL_CHECK
	atomic {
		if
		:: pool.rev != listed.rev -> seen = listed.life; goto undo
		:: else
		fi };
#endif
	atomic { MINE = k; FENCE = f; after = found.fence; write = found.write + 1; due[id] = real + LOOKS; goto end };

undo:	/* the claim was confirmed by another life, or the pool was changed meanwhile */
	atomic {
		due[id] = 0;
		ahead = !found.there || found.free;
		if
		:: swap(k, rev, own, found.fence, found.fence, ahead, found.write + 2)
		:: true /* it fails: the slot is unused until its fence */
		fi;
		own = 0; rev = 0 };
	atomic {
		if
		:: seen != listed.life -> swapPool(listed.rev, seen, 0, listed.upto)
		:: else
		fi;
		goto end };

look:	atomic { put(found, store[MINE]) };
	atomic { /* the answer */
		if
		:: found.rev == rev && STANDS -> due[id] = real + LOOKS; goto end
		:: found.rev == rev && !STANDS -> leave(); goto end
		:: found.rev != rev && FENCE < real -> leave(); goto end
		:: found.rev != rev && FENCE >= real && found.there && found.write >= write -> /* it belongs to another */
#ifndef M_OVERLAP
			if
			:: found.after < FENCE -> leave(); goto end /* and our ticks with it: stop at once */
			:: else
			fi;
#endif
			/* Ours up to the fence. There is no slot to watch any more. */
			rev = 0; due[id] = 0; goto rest
		:: else /* gone, or older */
		fi };
#ifdef M_NO_REASSERT
	atomic { due[id] = real + LOOKS; goto end };
#endif
#if !defined(M_NO_MARK) && !defined(M_MARK_AFTER)
	close();
#endif
	atomic {
		seen = (found.write > write -> found.write : write);
		swap(MINE, found.rev, own, after, FENCE, 0, seen + 1);
		if
		:: ok -> rev = store[MINE].rev; write = store[MINE].write
		:: else -> clear(found); goto look /* another process wrote it meanwhile */
		fi };
#ifdef M_MARK_AFTER
	close();
#endif
	atomic { due[id] = real + LOOKS; goto end };

rest:	/* continue up to the fence, without a slot */
	atomic { clear(found); listed.rev = 0; listed.life = 0; listed.open = 0; listed.upto = 0; ok = 0; seen = 0 };
endrest:	atomic { true -> leave(); goto end }
}

#ifdef SILENT
#define NEW_LIFE skip
/* The copy must show a reason to wait: a process held a slot, and no process has waited for
 * its fence yet. A fence ahead would not be such a reason. */
#define FORGOTTEN(k) (copy[k].there && !copy[k].free && copy[k].fence > poolCopy.upto)
#ifdef YOUNG
#define OLD(k) true
#else
#define OLD(k) (copy[k].fence < real)
#endif
#define MAY_RESTORE (poolCopy.open && !JOINING && (FORGOTTEN(0) || FORGOTTEN(NS - 1)) && OLD(0) && OLD(NS - 1))
#else
#define NEW_LIFE life++
#define MAY_RESTORE true
#endif

/* Events outside the protocol. */
active proctype World() {
	byte i;
end:	do
	:: atomic { real < T && IN_TIME(0) && IN_TIME(1) && IN_TIME(NP - 1) -> real++;
		for (i : 0 .. NS - 1) { used[i] = 0 }
		for (i : 0 .. NP - 1) { did[i] = 0 }
		i = 0 }
	:: atomic { select (i : 0 .. NP - 1); /* a process issues the present tick */
		if
		:: slotOf[i] != NONE && !did[i] && real <= fenceOf[i] ->
			assert(!used[slotOf[i]]);
			used[slotOf[i]] = 1; did[i] = 1
		:: else
		fi;
		i = 0 }
#ifndef FIXED
	:: atomic { !copied && !lost -> copied = 1; /* as it is then */
		putPool(poolCopy, pool);
		for (i : 0 .. NS - 1) { put(copy[i], store[i]) }
		i = 0 }
#endif
#ifndef SAME
	:: atomic { copied && !lost && MAY_RESTORE -> lost = 1; NEW_LIFE;
		putPool(pool, poolCopy); poolCopy.rev = 0; poolCopy.life = 0; poolCopy.open = 0; poolCopy.upto = 0;
		for (i : 0 .. NS - 1) { put(store[i], copy[i]); clear(copy[i]) }
		i = 0 }
#endif
#ifndef SILENT
	:: atomic { !lost -> lost = 1;
#ifdef LIFE
		life++;
#endif
		pool.rev = 0; pool.life = 0; pool.open = 0; pool.upto = 0;
		for (i : 0 .. NS - 1) { clear(store[i]); clear(copy[i]) }
		poolCopy.rev = 0; poolCopy.life = 0; poolCopy.open = 0; poolCopy.upto = 0;
		i = 0 }
#endif
	od
}

/* The first writes are not counted: their revisions are high numbers. */
init {
	byte i;
	atomic {
		pool.rev = 200; pool.life = 1; pool.open = 1;
		for (i : 0 .. HELD - 1) {
			store[i].there = 1; store[i].fence = W; store[i].own = 201 + i; store[i].rev = 201 + i; store[i].write = 1
#ifdef FIXED /* the copy has an earlier write of each holder */
			;
			put(copy[i], store[i]);
			copy[i].fence = OLDER(i); copy[i].rev = 211 + i; store[i].write = FIRST
#endif
		}
#ifdef FIXED
		putPool(poolCopy, pool);
#endif
		for (i : 0 .. NP - 1) {
			if
			:: i < HELD -> slotOf[i] = i; fenceOf[i] = W; due[i] = real + LOOKS
			:: else -> slotOf[i] = NONE
			fi;
			run Process(i)
		}
		i = 0
	}
}
