/* A fork of the store, as a model for Spin. See README.md.
 *
 * One register, in NC copies. Server 0 is the primary. A replica is promoted beside it,
 * and both answer: each call may reach either. Clocks show any time: uniqueness depends on
 * the fences and on the meaning of "confirmed", not on clocks.
 *
 *   -DLOWERED    an operator lets the new primary confirm without its replicas
 *   -DBOTH       with LOWERED: also the old one, while it is cut off
 *   -DM_...      a guard removed
 */
#ifndef NC
#define NC 2            /* copies: a primary and its replicas */
#endif
#ifndef T
#define T 4             /* the last tick */
#endif
#ifndef W
#define W 1             /* the window */
#endif
#ifndef WRITES
#define WRITES 4        /* writes tried, successful or not */
#endif
#define AWAY NC         /* a replica that is not attached */

/* write: drawn for each write, never used twice. own: the write that claimed the slot. */
typedef Slot { byte fence; byte own; byte rev }

Slot copy[NC];
byte follows[NC];       /* which primary a replica is attached to, or AWAY; a primary follows itself */
bit alone[NC];          /* as in the store's register: it confirms without replicas */
byte top = 0;           /* the promoted server; 0 before a promotion */
byte draw = 1;
bit used[T + 1];        /* issued ticks */

#define PRIMARY(x) (follows[x] == x)
#define HAS(x, y) (follows[y] == x)
#if NC == 3
#define ALL_ATTACHED(x) (HAS(x, 0) && HAS(x, 1) && HAS(x, 2))
#define ONE_ATTACHED(x) (HAS(x, (x + 1) % 3) || HAS(x, (x + 2) % 3))
#else
#define ALL_ATTACHED(x) (HAS(x, 0) && HAS(x, 1))
#define ONE_ATTACHED(x) ALL_ATTACHED(x)
#endif

inline send(to, from) { copy[to].fence = copy[from].fence; copy[to].own = copy[from].own; copy[to].rev = copy[from].rev }
inline sendAll(from) {
	for (i : 0 .. NC - 1) {
		if
		:: i != from && follows[i] == from -> send(i, from)
		:: else
		fi
	}
	i = 0
}
/* Any server that considers itself the primary. */
inline connect(x) {
	if
	:: PRIMARY(0) -> x = 0
	:: top != 0 -> x = top
	fi
}

/* Server at confirms what it has: it is primary, and all replicas that were ever
 * attached have it. */
inline confirm(at) {
	if
#ifdef M_NOT_PRIMARY
	:: alone[at] -> result = 1
#else
	:: alone[at] && PRIMARY(at) -> result = 1
#endif
#ifdef M_ATTACHED_ONLY
	:: PRIMARY(at) -> sendAll(at); result = 1
#elif defined(M_ONE_OF_ALL)
	:: PRIMARY(at) && ONE_ATTACHED(at) ->
		if
		:: follows[(at + 1) % NC] == at -> send((at + 1) % NC, at)
		:: follows[(at + 2) % NC] == at && (at + 2) % NC != at -> send((at + 2) % NC, at)
		fi;
		result = 1
#else
	:: PRIMARY(at) && ALL_ATTACHED(at) -> sendAll(at); result = 1
#endif
	:: result = 2 /* it does not confirm, or the answer is lost */
	fi
}

/* One write of fence f by owner o over revision r, at server x, and its confirmation there.
 * result: 1 confirmed, 0 not applied, 2 unknown. w is its revision. */
inline swap(o, f, r) {
	d_step { w = draw; draw++ }
	atomic {
		if
		:: !PRIMARY(x) -> result = 0
		:: PRIMARY(x) && copy[x].rev != r -> result = 0
		:: PRIMARY(x) && copy[x].rev == r ->
			copy[x].fence = f; copy[x].own = o; copy[x].rev = w; result = 2
		fi
	}
	if
	:: atomic { result == 2 ->
#ifdef M_CONFIRM_ELSEWHERE
		connect(x);
#endif
		confirm(x)
	   }
	:: else
	fi;
#ifdef M_READ_SETTLES
	if
	:: atomic { result == 2 -> connect(x);
		if
		:: copy[x].rev == w -> result = 1
		:: else
		fi
	   }
	:: else
	fi
#endif
}

proctype Process() {
	byte own, fence, rev, pos;      /* the slot held; own is 0 without a slot */
	byte c, f, rf, rr, result, w, x, i;
end:	atomic { c = 0; f = 0; rf = 0; rr = 0; result = 0; w = 0; x = 0; i = 0 };
	do
	:: atomic { own == 0 && draw <= WRITES -> /* claim: read, and write */
		select (c : 1 .. T);
		connect(x);
		rf = copy[x].fence; rr = copy[x].rev;
		f = (c > rf + 1 -> c : rf + 1) + W;
		if
		:: rf >= c || f > T -> goto end
		:: else
		fi;
		connect(x) }; /* the write may reach another server than the read */
		swap(w, f, rr);
		atomic {
#ifdef M_CLAIM_UNCONFIRMED
		if
		:: result == 2 -> result = 1
		:: else
		fi;
#endif
		if
		:: result == 1 -> own = w; fence = f; rev = w; pos = rf + 1
		:: else
		fi;
		goto end }
	:: atomic { own != 0 -> /* issue a tick */
		select (c : 1 .. T);
		c = (c > pos -> c : pos);
		if
		:: c <= fence -> assert(!used[c]); used[c] = 1; pos = c + 1
		:: else
		fi;
		goto end }
	:: atomic { own != 0 && draw <= WRITES -> /* renew */
		select (c : 1 .. T);
		f = (c > pos -> c : pos) + W;
		if
		:: f > T || f <= fence -> goto end
		:: else
		fi;
		connect(x) };
		swap(own, f, rev);
		atomic {
#ifdef M_RENEWAL_UNCONFIRMED
		if
		:: result == 2 -> result = 1
		:: else
		fi;
#endif
		if
		:: result == 1 -> fence = f; rev = w
		:: else
		fi;
		goto end }
	:: atomic { own != 0 -> /* look: the revision found is written over next; the fence stays as it was confirmed */
		connect(x);
		if
		:: copy[x].own == own ->
			rev = copy[x].rev
#ifdef M_LOOK_SETTLES
			; fence = copy[x].fence
#endif
		:: else -> own = 0; fence = 0; rev = 0; pos = 0
		fi;
		goto end }
	:: atomic { own != 0 && draw <= WRITES -> /* release */
		connect(x);
		f = (pos > 1 -> pos - 1 : 0); c = own; rr = rev;
		own = 0; fence = 0; rev = 0; pos = 0 };
		swap(c, f, rr);
		atomic { goto end }
	:: atomic { own != 0 -> own = 0; fence = 0; rev = 0; pos = 0; goto end } /* crash */
	od
}

/* Events outside the protocol. */
active proctype World() {
	byte i, k;
end:	do
	:: atomic { select (k : 0 .. NC - 1); /* a replica loses its primary, or finds one and copies its data */
		if
		:: !PRIMARY(k) && follows[k] != AWAY -> follows[k] = AWAY
		:: follows[k] == AWAY && PRIMARY(0) -> follows[k] = 0; send(k, 0)
		:: follows[k] == AWAY && top != 0 -> follows[k] = top; send(k, top)
		:: !PRIMARY(k) && follows[k] != AWAY -> i = follows[k]; send(k, i) /* asynchronously */
		:: else
		fi;
		i = 0; k = 0 }
	:: atomic { top == 0 -> /* a replica is promoted while the primary continues */
		select (k : 1 .. NC - 1);
		top = k; follows[k] = k; k = 0 }
	:: atomic { top != 0 && PRIMARY(0) -> /* the old primary is found, and made a replica */
		follows[0] = top; send(0, top); alone[0] = alone[top] }
#ifdef LOWERED
	:: atomic { top != 0 && !alone[top] -> alone[top] = 1 }
#endif
#ifdef BOTH
	:: atomic { top != 0 && PRIMARY(0) && !alone[0] -> alone[0] = 1 }
#endif
	od
}

init {
	byte i;
	atomic {
		run Process(); run Process()
	}
}
