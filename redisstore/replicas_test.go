package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

func TestAStoreOpenedWhileItsReplicaIsAwayWaitsForItToo(t *testing.T) {
	t.Parallel()
	p, replicas := withReplicas(t, 1)
	early := open(t, "redis://"+p.Addr())
	confirmed(t, early, "with the replica")
	replicas[0].Kill()
	late := open(t, "redis://"+p.Addr())
	unconfirmed(t, early, "opened before", "0 of 1 replicas", "firn store replicas", "?replicas=N")
	unconfirmed(t, late, "opened after", "0 of 1 replicas")
	for what, s := range map[string]*redisstore.Store{"early": early, "late": late} {
		if f := verdict(t, s); f.Verdict != store.Bad || !contains(f.Says, "1 recorded, 0 attached") {
			t.Errorf("%s: %v", what, f)
		}
	}
	replicas[0].Restart()
	settles(t, late, "with the replica back")
	if f := verdict(t, late); f.Verdict != store.Good || !contains(f.Says, "waits for 1") {
		t.Error(f)
	}
}

func TestAReplicaPromotedBesideALivingPrimaryStopsBoth(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, seen := range []bool{true, false} {
		p, replicas := withReplicas(t, 1)
		before := open(t, "redis://"+p.Addr())
		if seen {
			confirmed(t, before, "together")
		}
		if err := raw(t, replicas[0].Addr()).Do(ctx, "replicaof", "no", "one").Err(); err != nil {
			t.Fatal(err)
		}
		unconfirmed(t, open(t, "redis://"+replicas[0].Addr()), "on the promoted one", "0 of 1")
		if seen { // otherwise no process there knows that it ever had a replica
			unconfirmed(t, before, "on the old primary", "0 of 1")
			unconfirmed(t, open(t, "redis://"+p.Addr()), "a new handle on the old primary", "0 of 1")
		}
	}
}

// Nothing is recorded yet: the primary that is cut off waits for no replica.
func TestAReplicaPromotedWithOneOfItsOwnWaitsForTheFormerPrimary(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, replicas := withReplicas(t, 2)
	promoted, follower := replicas[0], raw(t, replicas[1].Addr())
	if err := raw(t, promoted.Addr()).ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if err := follower.ReplicaOf(ctx, "127.0.0.1", strconv.Itoa(promoted.Port())).Err(); err != nil {
		t.Fatal(err)
	}
	online(t, promoted.Addr(), 1)
	s := open(t, "redis://"+promoted.Addr())
	if f := verdict(t, s); f.Verdict != store.Bad || !contains(f.Says, "2 recorded, 1 attached") || !contains(f.Says, "its former primary may be alive") || !contains(f.Advice, "firn store replicas 1") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	unconfirmed(t, s, "on the promoted one", "1 of 2")
	unconfirmed(t, open(t, "redis://"+promoted.Addr()), "of a new handle", "1 of 2")
	confirmed(t, open(t, "redis://"+p.Addr()), "on the former primary")
	if err := s.SetReplicas(ctx, 1); err != nil {
		t.Fatal(err)
	}
	confirmed(t, s, "with a lowered number")
	if err := raw(t, promoted.Addr()).FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	confirmed(t, s, "after a wipe, as the number was lowered")
}

// The number was lowered to 0, and the replica came after that: the former primary waits for none.
func TestAReplicaThatCameAfterTheNumberWasLoweredToZeroIsNotPromotedUnnoticed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, replicas := withReplicas(t, 1)
	before := open(t, "redis://"+p.Addr())
	confirmed(t, before, "together")
	replicas[0].Kill()
	await(t, "it to be gone", func() bool { return replicaLines(raw(t, p.Addr())) == "" })
	if err := before.SetReplicas(ctx, 0); err != nil {
		t.Fatal(err)
	}
	confirmed(t, before, "alone")
	later := servers.Replica(t, p.Addr())
	online(t, p.Addr(), 1)
	if err := raw(t, later.Addr()).ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "it to be detached", func() bool { return replicaLines(raw(t, p.Addr())) == "" })
	confirmed(t, before, "on the former primary")
	after := open(t, "redis://"+later.Addr())
	if f := verdict(t, after); f.Verdict != store.Bad || !contains(f.Says, "its former primary may be alive") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	unconfirmed(t, after, "on the promoted one", "0 of 1")
	unconfirmed(t, open(t, "redis://"+later.Addr()), "of a new handle", "0 of 1")
	if err := after.SetReplicas(ctx, 0); err != nil { // the operator has ended the former primary
		t.Fatal(err)
	}
	confirmed(t, after, "with a lowered number")
	confirmed(t, open(t, "redis://"+later.Addr()), "of a new handle, with a lowered number")
	if err := raw(t, later.Addr()).FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	confirmed(t, after, "after a wipe, as the number was lowered here")
}

// patient opens a store that waits for replicas long enough for a busy machine.
func patient(addr string, timeout time.Duration) (*redisstore.Store, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: timeout + time.Second})
	return redisstore.OpenClient(context.Background(), client, redisstore.Config{ConfirmTimeout: timeout})
}

func TestAttachingReplicasFailsNoStartAndNoWrite(t *testing.T) {
	t.Parallel()
	// The first replica waits for its data for five seconds, the default of Redis.
	for _, p := range []*servers.Server{servers.Redis(t), primary(t), primary(t), primary(t)} {
		var stop atomic.Bool
		var group sync.WaitGroup
		var writes atomic.Int64
		for w := range 3 {
			group.Go(func() {
				s, err := patient(p.Addr(), 8*time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				for !stop.Load() {
					confirmed(t, s, fmt.Sprint("writer", w))
					writes.Add(1)
				}
			})
		}
		group.Go(func() {
			for !stop.Load() {
				s, err := patient(p.Addr(), 8*time.Second)
				if err != nil {
					t.Errorf("a start: %v", err)
					continue
				}
				if _, err := s.CompareAndSwap(context.Background(), "k", 0, []byte("v")); err != nil && !errors.Is(err, store.ErrConflict) {
					t.Errorf("its first write: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
		for n := 1; n <= 2; n++ {
			servers.Replica(t, p.Addr())
			online(t, p.Addr(), n)
			await(t, "the record", func() bool { return strings.Join(recorded(t, p.Addr()), "") == fmt.Sprintf("\treplicas %d 0", n) })
			before := writes.Load()
			await(t, "writes beside them", func() bool { return writes.Load() > before+20 })
		}
		stop.Store(true)
		group.Wait()
	}
}

func TestAWriteIsConfirmedWhileTheFirstReplicaOnlyLoads(t *testing.T) {
	t.Parallel()
	p := servers.Redis(t, "--repl-diskless-sync-delay", "3600")
	servers.Redis(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(p.Port()))
	operator := raw(t, p.Addr())
	await(t, "it to be attached", func() bool { return contains(replicaLines(operator), "state=wait_bgsave") })
	s := open(t, "redis://"+p.Addr())
	confirmed(t, s, "beside a replica that waits for its data")
	if f := verdict(t, s); f.Verdict != store.Doubtful || !contains(f.Says, "0 recorded, 1 attached, 0 of them online") || !contains(f.Advice, "replica-priority 0") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
}

// It has acknowledged something, and lacks what was confirmed before Firn writes again.
func TestAReplicaThatIsOnlineAndBehindMustNotBePromoted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, replicas := withReplicas(t, 2)
	s := open(t, "redis://"+p.Addr())
	replicas[1].Pause()
	if there, err := s.Replicas(ctx); err != nil || there.Attached != 2 || there.Online != 2 || there.CaughtUp != 1 {
		t.Errorf("%+v, %v", there, err)
	}
	if f := verdict(t, s); f.Verdict != store.Doubtful || !contains(f.Says, "2 of them online, 1 caught up") || !contains(f.Advice, "promote none before it has caught up") || !contains(f.Advice, "replica-priority 0") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	replicas[1].Resume()
	await(t, "it to catch up", func() bool {
		there, err := s.Replicas(ctx)
		return err == nil && there.CaughtUp == 2
	})
	if f := verdict(t, s); f.Verdict != store.Good || !contains(f.Says, "2 caught up") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	if n := raw(t, p.Addr()).Exists(ctx, "firn").Val(); n != 0 {
		t.Error("asking left something behind")
	}
	refuses := raw(t, p.Addr())
	if err := refuses.ConfigSet(ctx, "min-replicas-to-write", "3").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Replicas(ctx)
	expect(t, "a server that takes no writes", err, store.ErrRefused, "min-replicas-to-write")
	if f := verdict(t, s); f.Verdict != store.Doubtful || !contains(f.Says, "cannot find out which have caught up") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
}

func TestAReaderOfTheStreamDoesNotCountAsAReplica(t *testing.T) {
	t.Parallel()
	// Like redis-cli --replica and programs that copy changes elsewhere: it acknowledges nothing.
	p := primary(t)
	reader, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := reader.Write([]byte("SYNC\r\n")); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	operator := raw(t, p.Addr())
	await(t, "it to be attached", func() bool { return contains(replicaLines(operator), "state=online,offset=0,") })
	s := open(t, "redis://"+p.Addr())
	confirmed(t, s, "beside it")
	if f := verdict(t, s); f.Verdict != store.Good || !contains(f.Says, "no replicas") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	if got := recorded(t, p.Addr()); len(got) != 0 {
		t.Errorf("recorded are %q", got)
	}
}

// Its host died, or a firewall forgot the connection: the primary does not notice.
func TestAReplicaThatIsBackWhileItsDeadConnectionIsThereCountsOnce(t *testing.T) {
	t.Parallel()
	p := primary(t)
	end := make(chan struct{})
	proxy := servers.NewProxy(t, p.Addr(), func(server io.Writer, client io.Reader) {
		_, _ = io.Copy(server, client)
		<-end // the primary's side stays open
	})
	t.Cleanup(func() { close(end) })
	replica := servers.Replica(t, proxy.Addr())
	online(t, p.Addr(), 1)
	s := open(t, "redis://"+p.Addr())
	confirmed(t, s, "before")
	replica.Kill()
	operator := raw(t, p.Addr())
	silent := regexp.MustCompile(`lag=([3-9]|\d\d)`)
	await(t, "its connection to be silent", func() bool { return silent.MatchString(replicaLines(operator)) })
	replica.Restart()
	await(t, "it to be there twice", func() bool {
		lines := replicaLines(operator)
		return strings.Count(lines, "state=online") == 2 && !contains(lines, "offset=0,")
	})
	confirmed(t, s, "while it is there twice")
	confirmed(t, open(t, "redis://"+p.Addr()), "of a new handle")
	if there, err := s.Replicas(context.Background()); err != nil || there.Recorded != 1 || there.Online != 1 || there.Attached != 2 {
		t.Errorf("%+v, %v", there, err)
	}
}

// As with a host name that has the addresses of two servers, or a load balancer.
func TestAnAddressOfTwoServersIsBad(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addrs := []string{servers.Redis(t).Addr(), servers.Redis(t).Addr()}
	var dialed atomic.Int64
	for n := 1; n <= 2; n++ {
		client := redis.NewClient(&redis.Options{MaxRetries: -1, Dialer: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("tcp", addrs[dialed.Add(1)%int64(n)])
		}})
		s, err := redisstore.OpenClient(ctx, client, redisstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if f := verdict(t, s); n == 1 && f.Verdict != store.Good || n == 2 && (f.Verdict != store.Bad || !contains(f.Says, "lead to 2 servers")) {
			t.Errorf("%d servers: %v: %v", n, f.Verdict, f)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestScriptsCountTheReplicasInINFO(t *testing.T) {
	t.Parallel()
	operator := raw(t, servers.Redis(t).Addr())
	const a, b = "ip=10.0.0.1,port=6379,state=", "ip=10.0.0.2,port=6379,state="
	for _, test := range []struct {
		replicas                    []string
		addresses, online, attached int64
	}{
		{nil, 0, 0, 0},
		{[]string{a + "online,offset=1,lag=0", b + "online,offset=1,lag=1"}, 2, 2, 2},
		{[]string{a + "online,offset=1,lag=0", b + "online,offset=1,lag=99"}, 2, 2, 2},
		{[]string{a + "online,offset=0,lag=0", b + "wait_bgsave,offset=0,lag=0"}, 0, 0, 2},
		{[]string{"ip=10.0.0.3,port=0,state=wait_bgsave,offset=0,lag=0", b + "online,offset=1,lag=0"}, 1, 1, 1}, // redis-cli --replica
		{[]string{a + "online,offset=1,lag=2", a + "online,offset=1,lag=0"}, 1, 2, 2},
		{[]string{a + "online,offset=1,lag=3", a + "online,offset=1,lag=0"}, 1, 1, 2},
		{[]string{a + "online,offset=1,lag=12,type=main-channel", a + "online,offset=1,lag=0,type=replica"}, 1, 1, 2},
		{[]string{a + "online,offset=1,lag=-3600", a + "online,offset=1,lag=0"}, 1, 1, 2}, // the clock was set back by an hour
		{[]string{a + "online,offset=1,lag=-2", a + "online,offset=1,lag=-2"}, 1, 1, 2},
		{[]string{a + "online,offset=1,lag=-1", a + "online,offset=1,lag=-1"}, 1, 2, 2}, // at the beginning of a second, by the server's two clocks
	} {
		info := fmt.Sprintf("role:master\r\nconnected_slaves:%d\r\n", len(test.replicas))
		for i, r := range test.replicas {
			info += fmt.Sprintf("slave%d:%s\r\n", i, r)
		}
		info += "master_replid:x\r\nrun_id:x\r\nsync_full:1\r\nsync_partial_ok:1\r\ntotal_commands_processed:1\r\n"
		// Replaces the server's own functions.
		const server = "local redis = {call = function(name) if name == 'INFO' then return ARGV[5] end if name == 'ZCOUNT' then return 0 end return {} end}"
		got, err := operator.Eval(context.Background(), server+redisstore.ReplicasScript+"return {addresses, online, attached}", []string{"firn"}, 0, 0, "-", "single", info).Int64Slice()
		if err != nil || !slices.Equal(got, []int64{test.addresses, test.online, test.attached}) {
			t.Errorf("%q: the script counts %v, %v, want %v", test.replicas, got, err, test)
		}
	}
}

// halfDead starts a replica behind a proxy and returns the replica's side of each of its connections.
// After that is closed, the primary's side stays open.
func halfDead(t *testing.T, p *servers.Server) (*servers.Server, <-chan io.Reader) {
	t.Helper()
	end, sides := make(chan struct{}), make(chan io.Reader, 100)
	proxy := servers.NewProxy(t, p.Addr(), func(server io.Writer, client io.Reader) {
		sides <- client
		_, _ = io.Copy(server, client) // its error is the connection's end
		<-end
	})
	t.Cleanup(func() { close(end) })
	return servers.Replica(t, proxy.Addr()), sides
}

func drop(t *testing.T, side io.Reader) {
	t.Helper()
	if err := side.(net.Conn).Close(); err != nil {
		t.Fatal(err)
	}
}

// A firewall that forgets a connection notifies at most one side. The replica is back at once, and its
// earlier connection is not yet silent.
func TestAReplicaThatIsBackAtOnceRaisesNothing(t *testing.T) {
	t.Parallel()
	p := primary(t)
	_, sides := halfDead(t, p)
	online(t, p.Addr(), 1)
	s := open(t, "redis://"+p.Addr())
	confirmed(t, s, "before")
	drop(t, <-sides)
	online(t, p.Addr(), 2)
	another := open(t, "redis://"+p.Addr())
	settles(t, s, "once its earlier connection is silent")
	confirmed(t, another, "of a new handle")
	if got := recorded(t, p.Addr()); len(got) != 1 || got[0] != "\treplicas 1 0" {
		t.Errorf("recorded are %q", got)
	}
}

// Its first connection has acknowledged the write, and is dead; its second one acknowledges it too.
func TestAReplicaThatIsBackWhileAWriteWaitsDoesNotCountForOneThatIsAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		earlier   bool // it has an even earlier connection, which the primary closes at the same time
		elsewhere bool // it comes from another address
		reset     bool // someone resets the server's statistics at the same time
		hidden    bool // ... before the write and once the replica is back, and others send many commands
	}{"": {}, "as another one is closed": {earlier: true}, "from elsewhere": {elsewhere: true}, "with reset statistics": {reset: true}, "hidden": {hidden: true}, "hidden, from elsewhere": {hidden: true, elsewhere: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			p := primary(t)
			replica, sides := halfDead(t, p)
			online(t, p.Addr(), 1)
			operator := raw(t, p.Addr())
			dead := operator.ClientList(ctx).Val()
			if test.earlier {
				drop(t, <-sides)
				online(t, p.Addr(), 2)
			}
			away := servers.Replica(t, p.Addr())
			await(t, "the other replica", func() bool { return contains(replicaLines(operator), fmt.Sprintf("port=%d,state=online", away.Port())) })
			s, err := patient(p.Addr(), 3*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			settles(t, s, "with both")
			away.Kill()
			await(t, "the primary to notice", func() bool { return !contains(replicaLines(operator), fmt.Sprintf("port=%d,", away.Port())) })
			if test.elsewhere {
				if err := raw(t, replica.Addr()).ConfigSet(ctx, "replica-announce-ip", "127.0.0.9").Err(); err != nil {
					t.Fatal(err)
				}
			}
			offsets := func() string {
				return fmt.Sprint(regexp.MustCompile(`offset=\d+`).FindAllString(replicaLines(operator), -1))
			}
			before := offsets()
			if test.hidden {
				if err := operator.ConfigResetStat(ctx).Err(); err != nil {
					t.Fatal(err)
				}
			}
			wrote := make(chan struct{})
			go func() {
				defer close(wrote)
				unconfirmed(t, s, "with one away", "1 of ")
			}()
			await(t, "the write to wait", func() bool { return contains(operator.ClientList(ctx).Val(), "cmd=wait") })
			await(t, "it to be acknowledged", func() bool { return offsets() != before })
			if test.earlier {
				if err := operator.ClientKillByFilter(ctx, "ID", regexp.MustCompile(`id=(\d+) .* flags=S`).FindStringSubmatch(dead)[1]).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if test.reset {
				if err := operator.ConfigResetStat(ctx).Err(); err != nil {
					t.Fatal(err)
				}
			}
			drop(t, <-sides)
			if test.hidden { // it acknowledges once a second
				await(t, "it to be back", func() bool { return strings.Count(replicaLines(operator), "state=online") == 2 })
				pipe := operator.Pipeline()
				pipe.ConfigResetStat(ctx)
				for range 200 {
					pipe.Ping(ctx)
				}
				if _, err := pipe.Exec(ctx); err != nil {
					t.Fatal(err)
				}
			}
			<-wrote
			unconfirmed(t, s, "with one away and a dead connection", "1 of ")
		})
	}
}

// It was online when another handle wrote, so writes wait for it from then on, including this one,
// which it may never have received.
func TestAReplicaThatCameAndWentWhileAWriteWaitedCounts(t *testing.T) {
	t.Parallel()
	p, replicas := withReplicas(t, 1)
	client := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1, ReadTimeout: 9 * time.Second})
	s, err := redisstore.OpenClient(context.Background(), client, redisstore.Config{ConfirmTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	confirmed(t, s, "before")
	guest, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	say := func(text string) {
		t.Helper()
		if _, err := guest.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	say("REPLCONF listening-port 7777\r\n")
	if _, err := io.ReadFull(guest, make([]byte, len("+OK\r\n"))); err != nil {
		t.Fatal(err)
	}
	say("SYNC\r\n")
	go func() { _, _ = io.Copy(io.Discard, guest) }() // until it is closed
	operator := raw(t, p.Addr())
	await(t, "it to have its data", func() bool { return contains(replicaLines(operator), "port=7777,state=online,offset=0,") })
	replicas[0].Pause()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		unconfirmed(t, s, "beside it", "1 of 2")
	}()
	await(t, "the write to wait", func() bool { return contains(operator.ClientList(context.Background()).Val(), "cmd=wait") })
	say("REPLCONF ACK 1\r\n")
	await(t, "it to be online", func() bool { return contains(replicaLines(operator), "port=7777,state=online,offset=1,") })
	unconfirmed(t, open(t, "redis://"+p.Addr()), "of another handle", "0 of 2")
	if err := guest.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "it to be gone", func() bool { return !contains(replicaLines(operator), "port=7777,") })
	replicas[0].Resume()
	<-wrote
}

func TestReplicasBehindOneAddressAreEachWaitedFor(t *testing.T) {
	t.Parallel()
	p := primary(t)
	announced := []string{"--replica-announce-ip", "192.0.2.1", "--replica-announce-port", "6379"}
	servers.Replica(t, p.Addr(), announced...)
	paused := servers.Replica(t, p.Addr(), announced...)
	online(t, p.Addr(), 2)
	s := open(t, "redis://"+p.Addr())
	confirmed(t, s, "with both")
	if got := recorded(t, p.Addr()); len(got) != 1 || got[0] != "\treplicas 2 0" {
		t.Errorf("recorded are %q, of %s", got, replicaLines(raw(t, p.Addr())))
	}
	paused.Pause()
	unconfirmed(t, s, "with one paused", "1 of 2")
	unconfirmed(t, open(t, "redis://"+p.Addr()), "of a new handle", "1 of 2")
	paused.Resume()
	settles(t, s, "with both again")
}

func TestAPausedReplicaIsWaitedForAndSettlesLater(t *testing.T) {
	t.Parallel()
	p, replicas := withReplicas(t, 2)
	s := open(t, "redis://"+p.Addr())
	confirmed(t, s, "with both")
	replicas[1].Pause()
	begun := time.Now()
	unconfirmed(t, s, "with one paused", "1 of 2 replicas have it after 1s")
	if took := time.Since(begun); took > 2500*time.Millisecond {
		t.Errorf("that took %v", took)
	}
	replicas[1].Resume()
	settles(t, s, "the same with both again")
}

func TestAConflictNeedsNoReplicas(t *testing.T) {
	t.Parallel()
	p, replicas := withReplicas(t, 1)
	s := open(t, "redis://"+p.Addr())
	confirmed(t, s, "k")
	replicas[0].Kill()
	if _, err := s.CompareAndSwap(context.Background(), "k", 0, nil); !errors.Is(err, store.ErrConflict) {
		t.Error(err)
	}
}

func TestALostRecordIsRestoredByAHandleThatKnewIt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, lose := range [][]any{{"flushall"}, {"del", "firn"}, {"zremrangebylex", "firn", "-", "[ "}} {
		p, replicas := withReplicas(t, 1)
		s := open(t, "redis://"+p.Addr())
		confirmed(t, s, "before")
		replicas[0].Kill()
		if err := raw(t, p.Addr()).Do(ctx, lose...).Err(); err != nil {
			t.Fatal(err)
		}
		unconfirmed(t, s, "after", "0 of 1")
		unconfirmed(t, open(t, "redis://"+p.Addr()), "of a new handle", "0 of 1")
		if got := recorded(t, p.Addr()); len(got) != 1 || got[0] != "\treplicas 1 0" {
			t.Errorf("%v: recorded are %q", lose, got)
		}
	}
}

func TestTheRecordCannotBeReadAsAKey(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, _ := withReplicas(t, 1)
	s := open(t, "redis://"+p.Addr())
	confirmed(t, s, " first")
	list, err := s.List(ctx, "")
	if err != nil || len(list) != 1 || list[0].Key != " first" {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := s.Get(ctx, "\treplicas 1 0"); !errors.Is(err, store.ErrRefused) {
		t.Error(err)
	}
	operator := raw(t, p.Addr())
	if err := operator.ZAdd(ctx, "firn", member("\treplicas 0 0")).Err(); err != nil { // of an old copy
		t.Fatal(err)
	}
	_, err = redisstore.Open(ctx, "redis://"+p.Addr())
	expect(t, "two records, of a new handle", err, store.ErrRefused, "two members", "remove the older one")
	_, err = write(s, "k")
	expect(t, "two records", err, store.ErrRefused, "two members", "remove the older one")
	_, err = s.Replicas(ctx)
	expect(t, "two records, counted", err, store.ErrRefused, "two members", "remove the older one")
	if err := operator.ZRem(ctx, "firn", "\treplicas 0 0", "\treplicas 1 0").Err(); err != nil {
		t.Fatal(err)
	}
	if err := operator.ZAdd(ctx, "firn", member("\treplicas many")).Err(); err != nil {
		t.Fatal(err)
	}
	_, err = write(s, "k")
	expect(t, "a malformed record", err, store.ErrRefused, "many", "remove the member")
	_, err = s.Traits().Examine(ctx)
	expect(t, "a malformed record, examined", err, store.ErrRefused, "many", "remove the member")
}

func TestAnOperatorMayWaitForFewerAndDoctorSaysWhatThatLoses(t *testing.T) {
	t.Parallel()
	p, replicas := withReplicas(t, 2)
	all, one, zero, three := open(t, "redis://"+p.Addr()), open(t, "redis://"+p.Addr()+"?replicas=1"), open(t, "redis://"+p.Addr()+"?replicas=0"), open(t, "redis://"+p.Addr()+"?replicas=3")
	confirmed(t, zero, "zero")
	unconfirmed(t, three, "three", "2 of 3")
	replicas[0].Pause()
	confirmed(t, one, "one")
	confirmed(t, zero, "zero")
	unconfirmed(t, all, "all", "1 of 2") // although only other handles have written before
	replicas[0].Resume()
	for _, test := range []struct {
		s    *redisstore.Store
		want store.Verdict
		says string
	}{
		{all, store.Good, "waits for 2"},
		{one, store.Doubtful, "waits for 1: if another replica is promoted, a failover may lose"},
		{zero, store.Bad, "waits for 0: a failover may lose"},
		{three, store.Bad, "waits for 3: no write is confirmed"},
		{open(t, "redis://"+replicas[1].Addr()), store.Bad, "it is a replica"},
	} {
		if f := verdict(t, test.s); f.Verdict != test.want || !contains(f.Says, test.says) {
			t.Errorf("%v: %v, want %v, %q", f.Verdict, f, test.want, test.says)
		}
	}
}

func TestReplicasThatMayDropWhatTheyAcknowledgeAreDoubtful(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, _ := withReplicas(t, 1)
	s, operator := open(t, "redis://"+p.Addr()), raw(t, p.Addr())
	confirmed(t, s, "k")
	for _, setting := range []string{"replica-ignore-maxmemory", "replica-read-only"} {
		for _, value := range []string{"no", "yes"} {
			if err := operator.ConfigSet(ctx, setting, value).Err(); err != nil {
				t.Fatal(err)
			}
			f := verdict(t, s)
			if value == "yes" && f.Verdict != store.Good || value == "no" && (f.Verdict != store.Doubtful || !contains(f.Advice, setting+" yes")) {
				t.Errorf("%s %s: %v: %v", setting, value, f.Verdict, f)
			}
		}
	}
}

func TestTheLifeChangesWithARestartAndWithALoweredNumberOnly(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, replicas := withReplicas(t, 1)
	s := open(t, "redis://"+p.Addr())
	first := confirmed(t, s, "first")
	if again := confirmed(t, open(t, "redis://"+p.Addr()), "another handle"); again != first || strings.Count(first, "/") != 1 {
		t.Errorf("%q, then %q", first, again)
	}
	replicas[0].Kill()
	operator := raw(t, p.Addr())
	await(t, "it to be gone", func() bool { return replicaLines(operator) == "" })
	if err := s.SetReplicas(ctx, 0); err != nil {
		t.Fatal(err)
	}
	lowered := confirmed(t, s, "lowered")
	if !strings.HasPrefix(lowered, first+"/") {
		t.Errorf("%q, lowered %q", first, lowered)
	}
	p.Kill()
	p.Restart()
	settles(t, s, "after the restart")
	if restarted := confirmed(t, s, "restarted"); restarted == lowered || restarted == first {
		t.Errorf("%q, restarted %q", lowered, restarted)
	}
}

func TestANumberIsLoweredForRunningHandlesAndNewOnes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, replicas := withReplicas(t, 2)
	running, operator := open(t, "redis://"+p.Addr()), open(t, "redis://"+p.Addr())
	confirmed(t, running, "with both")
	for n, word := range map[int]string{1: "2 online", -1: "0 to 100", 101: "0 to 100"} {
		expect(t, "too few or too many", operator.SetReplicas(ctx, n), store.ErrRefused, word)
	}
	expect(t, "on a replica", open(t, "redis://"+replicas[0].Addr()).SetReplicas(ctx, 2), store.ErrRefused, "replica")
	replicas[1].Kill()
	online(t, p.Addr(), 1)
	unconfirmed(t, running, "with one", "1 of 2")
	if err := operator.SetReplicas(ctx, 1); err != nil {
		t.Fatal(err)
	}
	lives := map[string]bool{}
	for what, s := range map[string]*redisstore.Store{"running": running, "operator": operator, "new": open(t, "redis://"+p.Addr())} {
		lives[confirmed(t, s, what)] = true
		there, err := s.Replicas(ctx)
		if err != nil || there.Recorded != 1 || there.Attached != 1 || there.Online != 1 || time.Since(there.Lowered).Abs() > time.Minute {
			t.Errorf("%s: %+v, %v", what, there, err)
		}
	}
	if len(lives) != 1 {
		t.Errorf("they are of the lives %v", lives)
	}
	if err := raw(t, p.Addr()).FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if lives[confirmed(t, running, "after a wipe")] = true; len(lives) != 1 {
		t.Errorf("a handle did not remember: %v", lives)
	}
	replicas[1].Restart()
	online(t, p.Addr(), 2)
	tries := 0
	await(t, "it to be raised by itself", func() bool { // the replica may still be behind
		tries++
		_, err := running.CompareAndSwap(ctx, fmt.Sprint("raised by itself ", tries), 0, nil)
		return err == nil
	})
	if there, err := operator.Replicas(ctx); err != nil || there.Recorded != 2 {
		t.Errorf("%+v, %v", there, err)
	}
	if err := operator.SetReplicas(ctx, 3); err != nil && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a number for replicas to come: %v", err)
	}
	unconfirmed(t, running, "before they come", "2 of 3")
}

// A promoted or restarted server does not know the script. Finding that out must not use up the
// replicas' time.
func TestANumberIsLoweredOnAServerThatDoesNotKnowTheScript(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := primary(t)
	gate := make(chan struct{}, 1)
	gate <- struct{}{}
	link := servers.NewProxy(t, p.Addr(), func(server io.Writer, client io.Reader) {
		acknowledgement := make([]byte, 1<<12)
		for {
			n, err := client.Read(acknowledgement)
			<-gate
			_, lost := server.Write(acknowledgement[:n])
			gate <- struct{}{}
			if err != nil || lost != nil {
				return
			}
		}
	})
	servers.Replica(t, link.Addr())
	gone := servers.Replica(t, p.Addr())
	online(t, p.Addr(), 2)
	s := open(t, "redis://"+p.Addr())
	confirmed(t, s, "with both")
	gone.Kill()
	operator := raw(t, p.Addr())
	await(t, "it to be gone", func() bool { return strings.Count(replicaLines(operator), "state=") == 1 })
	evals := func() int { return strings.Count(operator.Info(ctx, "commandstats").Val(), "cmdstat_eval:") }
	if err := errors.Join(operator.ScriptFlush(ctx).Err(), operator.ConfigResetStat(ctx).Err()); err != nil {
		t.Fatal(err)
	}
	<-gate // nothing is acknowledged until the script runs
	answer := make(chan error, 1)
	go func() { answer <- s.SetReplicas(ctx, 1) }()
	await(t, "the script to run", func() bool { return evals() == 1 })
	gate <- struct{}{}
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

// The server is stopped while the request is in flight, another is promoted, and the old one resumes.
func TestANumberIsNotLoweredByARequestThatComesLate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, replicas := withReplicas(t, 1)
	s := open(t, "redis://"+p.Addr())
	confirmed(t, s, "together")
	if err := s.SetReplicas(ctx, 1); err != nil { // its script is known from then on
		t.Fatal(err)
	}
	replicas[0].Kill()
	operator := raw(t, p.Addr())
	await(t, "it to be gone", func() bool { return replicaLines(operator) == "" })
	held, release, arrived := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var opened atomic.Bool
	proxy := servers.NewProxy(t, p.Addr(), func(server io.Writer, client io.Reader) {
		request := make([]byte, 1<<16)
		for {
			n, err := client.Read(request)
			late := opened.Load() && contains(string(request[:n]), "evalsha")
			if late {
				close(held)
				<-release
			}
			if _, err := server.Write(request[:n]); err != nil {
				t.Error(err)
			}
			if late {
				close(arrived)
			}
			if err != nil {
				return
			}
		}
	})
	answer := make(chan error, 1)
	through := open(t, "redis://"+proxy.Addr())
	opened.Store(true)
	go func() { answer <- through.SetReplicas(ctx, 0) }()
	<-held
	if err := <-answer; !errors.Is(err, store.ErrUnavailable) {
		t.Error(err)
	}
	late := operator.Time(ctx).Val().Add(4 * time.Second)
	await(t, "it to be late", func() bool { return operator.Time(ctx).Val().After(late) })
	close(release)
	<-arrived
	unconfirmed(t, s, "after it", "0 of 1")
	if got := recorded(t, p.Addr()); len(got) != 1 || got[0] != "\treplicas 1 0" {
		t.Errorf("recorded are %q", got)
	}
}

func TestARecordFromTheOtherSideOfASplitLowersNothing(t *testing.T) {
	t.Parallel()
	p, replicas := withReplicas(t, 1)
	s := open(t, "redis://"+p.Addr())
	confirmed(t, s, "together")
	replicas[0].Kill()
	s.Learn(0, time.Now().UnixMicro()) // it was on the other side, where the number was lowered
	unconfirmed(t, s, "back here", "0 of 1")
	unconfirmed(t, open(t, "redis://"+p.Addr()), "another", "0 of 1")
}

func TestAPrimaryThatIsDemotedMeanwhileConfirmsNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, back := range []bool{false, true} {
		p, replicas := withReplicas(t, 1)
		s := open(t, "redis://"+p.Addr())
		confirmed(t, s, "before")
		replicas[0].Pause()
		operator := raw(t, p.Addr())
		answers := make(chan error, 1)
		go func() {
			_, err := write(s, "meanwhile")
			answers <- err
		}()
		await(t, "it to wait", func() bool {
			info, err := operator.Info(ctx, "clients").Result()
			return err == nil && contains(info, "blocked_clients:1")
		})
		if err := operator.Do(ctx, "replicaof", "127.0.0.1", strconv.Itoa(replicas[0].Port())).Err(); err != nil {
			t.Fatal(err)
		}
		if back {
			if err := operator.Do(ctx, "replicaof", "no", "one").Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-answers; !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) {
			t.Errorf("back %v: %v", back, err)
		}
		replicas[0].Resume()
	}
}

func TestTheListedPrivilegesSuffice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, _ := withReplicas(t, 1)
	operator := raw(t, p.Addr())
	user := func(name string, rules ...any) string {
		if err := operator.Do(ctx, append([]any{"acl", "setuser", name, "on", ">geheim", "~firn"}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
		return "redis://" + name + ":geheim@" + p.Addr()
	}
	s := open(t, user("all", "+zrangebylex", "+zcount", "+zadd", "+zrem", "+eval", "+evalsha", "+time", "+info", "+wait", "+config|get", "+ttl", "+pubsub|numsub"))
	confirmed(t, s, "k")
	_, list := s.List(ctx, "")
	_, now := s.Traits().Clock.Now(ctx)
	_, there := s.Replicas(ctx)
	if err := errors.Join(list, now, there, s.SetReplicas(ctx, 1)); err != nil {
		t.Error(err)
	}
	if f := verdict(t, s); f.Verdict != store.Good {
		t.Error(f)
	}
	elsewhere := user("elsewhere", "+zrangebylex", "+zcount", "+zadd", "+zrem", "+eval", "+evalsha", "+info", "+wait") + "/1"
	expect(t, "another database", try(elsewhere), store.ErrRefused, "+select")
	confirmed(t, open(t, user("elsewhere", "+select")+"/1"), "in another database")
	// An applied write stays applied, even for a user who may not wait for replicas.
	waiting := open(t, user("hasty", "+zrangebylex", "+zcount", "+zadd", "+zrem", "+eval", "+evalsha", "+info"))
	unconfirmed(t, waiting, "without WAIT", "NOPERM")
}

func TestClientsThatBreakWhatAWritePromisesAreRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	addr := servers.Redis(t).Addr()
	for word, options := range map[string]redis.UniversalOptions{
		"up to 3 times": {},
		"ReadTimeout":   {MaxRetries: -1, ReadTimeout: time.Second},
		"unanswered":    {MaxRetries: -1, ReadTimeout: -1}, // such a call would keep its connection for ever
		"caches reads":  {MaxRetries: -1, Protocol: 3, ClientSideCacheConfig: &redis.ClientSideCacheConfig{}},
	} {
		options.Addrs = []string{addr}
		client := redis.NewUniversalClient(&options)
		_, err := redisstore.OpenClient(ctx, client, redisstore.Config{})
		expect(t, "a client", err, store.ErrRefused, word)
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	_, err := redisstore.OpenClient(ctx, client, redisstore.Config{ConfirmTimeout: time.Microsecond})
	expect(t, "a timeout", err, store.ErrRefused, "at least 1ms")
	_, err = redisstore.OpenClient(ctx, client, redisstore.Config{Replicas: 101})
	expect(t, "replicas", err, store.ErrRefused, "Replicas is 101: it must be at most 100")
	near := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, MaxRedirects: -1, RouteRandomly: true})
	_, err = redisstore.OpenClient(ctx, near, redisstore.Config{})
	expect(t, "a client of replicas", errors.Join(err, near.Close()), store.ErrRefused, "reads from replicas")
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": addr}})
	_, err = redisstore.OpenClient(ctx, ring, redisstore.Config{})
	expect(t, "a ring", errors.Join(err, client.Close(), ring.Close()), store.ErrRefused, "Ring")
}
