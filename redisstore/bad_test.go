package redisstore_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// try opens a store and writes to it.
func try(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := redisstore.Open(ctx, url)
	if err != nil {
		return err
	}
	_, err = s.CompareAndSwap(ctx, "k", 0, []byte("v"))
	return errors.Join(err, s.Close())
}

// expect wants an error of a kind that contains all words and no password.
func expect(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, word := range words {
		if !contains(err.Error(), word) {
			t.Errorf("%s: %q does not say %q", what, err, word)
		}
	}
	if contains(err.Error(), "geheim") {
		t.Errorf("%s: %q has the password", what, err)
	}
}

func TestBadServersAreNamedWithAWayOut(t *testing.T) {
	t.Parallel()
	open := servers.Redis(t)
	closed := servers.Redis(t, "--requirepass", "geheim")
	replica := servers.Redis(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(open.Port()))
	full := servers.Redis(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction")
	foreign := servers.Redis(t)
	evicts := servers.Redis(t, "--maxmemory-policy", "allkeys-lru")
	ctx := context.Background()
	if err := raw(t, foreign.Addr()).Set(ctx, "firn", "diary", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := raw(t, foreign.Addr()).ZAdd(ctx, "members", member("diary")).Err(); err != nil {
		t.Fatal(err)
	}
	if err := raw(t, open.Addr()).Do(ctx, "ACL", "SETUSER", "reader", "on", ">geheim", "~*", "+info", "+zrangebylex").Err(); err != nil {
		t.Fatal(err)
	}
	if err := raw(t, open.Addr()).Do(ctx, "ACL", "SETUSER", "stranger", "on", ">geheim", "~other", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what, url string
		kind      error
		words     []string
	}{
		{"no password", "redis://" + closed.Addr(), store.ErrRefused, []string{"requires a password"}},
		{"a wrong password", "redis://:geheimer@" + closed.Addr(), store.ErrRefused, []string{"check user and password"}},
		{"a user who may only read", "redis://reader:geheim@" + open.Addr(), store.ErrRefused, []string{"the user needs"}},
		{"a user without the key", "redis://stranger:geheim@" + open.Addr(), store.ErrRefused, []string{"the user needs"}},
		{"no such database", "redis://" + open.Addr() + "/99", store.ErrRefused, []string{"below the server's setting databases", "restart the server with the former value"}},
		{"a replica", "redis://" + replica.Addr(), store.ErrRefused, []string{"name the primary"}},
		{"a full server", "redis://" + full.Addr(), store.ErrRefused, []string{"raise maxmemory"}},
		{"a key of another type", "redis://" + foreign.Addr(), store.ErrRefused, []string{"?key=NAME"}},
		{"a server that evicts", "redis://" + evicts.Addr(), store.ErrRefused, []string{"allkeys-lru", "firn may be evicted", "noeviction"}},
		{"no server", "redis://:geheim@" + servers.Nowhere(t), store.ErrUnavailable, []string{"refused"}},
		{"a silent server", "redis://:geheim@" + servers.Silent(t), store.ErrUnavailable, nil},
		{"no cluster", "redis://" + open.Addr() + "?cluster=true", store.ErrRefused, []string{"not a cluster"}},
		{"no Sentinel", "redis://" + open.Addr() + "?master=main", store.ErrUnavailable, []string{"Sentinel"}},
		{"TLS to a server without", "rediss://" + open.Addr(), store.ErrUnavailable, []string{"redis:// instead"}},
	} {
		expect(t, test.what, try(test.url), test.kind, test.words...)
	}
	host, port, err := net.SplitHostPort(servers.Nowhere(t))
	if err != nil {
		t.Fatal(err)
	}
	stale := servers.Redis(t, "--replica-serve-stale-data", "no")
	if err := raw(t, stale.Addr()).Do(ctx, "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	waits, err := redisstore.Open(ctx, "redis://"+stale.Addr())
	if err != nil {
		t.Fatalf("a server that may serve soon is not opened: %v", err)
	}
	defer waits.Close()
	_, err = write(waits, "k")
	expect(t, "a replica without its primary", err, store.ErrUnavailable, "primary is unreachable")
	s, err := redisstore.Open(ctx, "redis://"+foreign.Addr()+"?key=members")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.List(ctx, "")
	expect(t, "a foreign member", err, store.ErrRefused, "diary", "not written by Firn")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := servers.Certificate(t, t.TempDir())
	other, _ := servers.Certificate(t, t.TempDir())
	port := strconv.Itoa(servers.FreePort(t))
	servers.Redis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	addr := "127.0.0.1:" + port
	pair := "&tls_cert=" + cert + "&tls_key=" + key
	if err := try("rediss://" + addr + "?tls_ca=" + cert + pair); err != nil {
		t.Errorf("with the right certificates: %v", err)
	}
	expect(t, "an unknown authority", try("rediss://"+addr), store.ErrUnavailable, "tls_ca")
	expect(t, "another authority", try("rediss://"+addr+"?tls_ca="+other), store.ErrUnavailable, "tls_ca")
	expect(t, "another name", try("rediss://"+addr+"?tls_server_name=redis.example&tls_ca="+cert+pair), store.ErrUnavailable, "tls_server_name")
	expect(t, "no TLS", try("redis://"+addr), store.ErrUnavailable, "rediss://")
}

func TestBadURLs(t *testing.T) {
	t.Parallel()
	for url, word := range map[string]string{
		"http://h":                           "begins with",
		"h:6379":                             `"h:6379": a URL begins with redis:// or rediss://, as in redis://h:6379`,
		"redis://":                           "names no host",
		"redis://:geheim@":                   "names no host",
		"redis://h,/0":                       "names no host",
		"redis://geheim@h":                   "USER:PASSWORD",
		"redis://:ge%zzheim@h":               "escaped",
		"redis://:geheim@h:port":             "port",
		"redis://h:0":                        "port",
		"redis://h:70000":                    "port",
		"redis://::1":                        "brackets",
		"redis://h/name":                     "number",
		"redis://h/-1":                       "number",
		"redis://a,b/1":                      "database 0",
		"redis://a/1?cluster=true":           "database 0",
		"redis://h?colour=red":               "no setting colour",
		"redis://h?key=":                     "needs one value",
		"redis://h?key=a&key=b":              "needs one value",
		"redis://h?replicas=many":            "number",
		"redis://h?replicas=-1":              "number",
		"redis://h?cluster=perhaps":          "neither true nor false",
		"redis://h?cluster=true&master=main": "exclude",
		"redis://h?tls_ca=x":                 "rediss://",
		"rediss://h?tls_ca=/nowhere":         "/nowhere",
		"rediss://h?tls_ca=/dev/null":        "no certificate",
		"rediss://h?tls_cert=/nowhere":       "nowhere",
		"redis://h?%zz":                      "NAME=VALUE",
	} {
		_, err := redisstore.Open(context.Background(), url)
		expect(t, url, err, store.ErrRefused, word)
	}
}

func TestExamine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, test := range []struct {
		what string
		args []string
		want map[string]store.Verdict
		says string
	}{
		{"a durable server", nil, map[string]store.Verdict{"persistence": store.Good, "eviction": store.Good, "replicas": store.Good}, "nothing acknowledged is lost; it has no configuration file"},
		{"one that syncs each second", []string{"--appendfsync", "everysec"}, map[string]store.Verdict{"persistence": store.Doubtful}, "everysec"},
		{"one that does not sync beside a rewrite", []string{"--no-appendfsync-on-rewrite", "yes"}, map[string]store.Verdict{"persistence": store.Doubtful}, "set no-appendfsync-on-rewrite no"},
		{"one without persistence", []string{"--appendonly", "no"}, map[string]store.Verdict{"persistence": store.Bad}, "if it had appendonly yes before it started, stop it"},
		{"one with snapshots", []string{"--appendonly", "no", "--save", "60 1000"}, map[string]store.Verdict{"persistence": store.Bad}, "60 1000"},
		{"one that evicts only keys with an expiry", []string{"--maxmemory-policy", "volatile-lru"}, map[string]store.Verdict{"eviction": store.Good}, "never evicted"},
		{"one without CONFIG", []string{"--rename-command", "CONFIG", ""}, map[string]store.Verdict{"persistence": store.Doubtful, "eviction": store.Good}, "power loses the last moments is unknown"},
	} {
		s := open(t, "redis://"+servers.Redis(t, test.args...).Addr())
		findings, err := s.Traits().Examine(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all := ""
		for _, f := range findings {
			all += f.String() + "\n"
			if want, ok := test.want[f.Subject]; ok && f.Verdict != want {
				t.Errorf("%s: %v, want %v: %v", test.what, f.Verdict, want, f)
			}
			if (f.Verdict == store.Good) != (f.Advice == "") {
				t.Errorf("%s: %v has advice %q", test.what, f.Verdict, f.Advice)
			}
		}
		if len(findings) != 3 || !contains(all, test.says) {
			t.Errorf("%s: %s", test.what, all)
		}
	}
}

// Managed servers may hide it; a Redis does not.
func TestAServerThatHidesWhatItEvictsIsDoubtful(t *testing.T) {
	f := redisstore.Evicts(map[string]string{"role": "master"})
	if f.Verdict != store.Doubtful || f.String() != "eviction: INFO does not show maxmemory-policy: make sure that it is noeviction or a volatile one" {
		t.Errorf("%v: %v", f.Verdict, f)
	}
}

// CONFIG SET changes the running process only, and CONFIG REWRITE needs a file.
func TestSettingsThatTheNextStartMayLackAreNamed(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{"": true, "/etc/redis.conf": false} {
		info := map[string]string{"aof_enabled": "1", "aof_last_bgrewrite_status": "ok", "config_file": file}
		f := redisstore.Persists(info, map[string]string{"appendfsync": "always"}, nil)
		if f.Verdict != store.Good || contains(f.Says, "keep --appendonly yes --appendfsync always on its command line") != want {
			t.Errorf("with the file %q: %v: %v", file, f.Verdict, f)
		}
		info["aof_enabled"] = "0"
		f = redisstore.Persists(info, map[string]string{}, nil)
		step := "4. CONFIG REWRITE; its command line, and an include further down in its file, override that file"
		if want {
			step = "4. put --appendonly yes --appendfsync always on the command line of its next start"
		}
		if f.Verdict != store.Bad || !contains(f.Advice, step) {
			t.Errorf("with the file %q: %v: %v", file, f.Verdict, f)
		}
	}
}

func TestExamineFindsWhatAnOperatorDidToARunningServer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servers.Redis(t)
	s, operator := open(t, "redis://"+server.Addr()), raw(t, server.Addr())
	confirmed(t, s, "k")
	if err := operator.Do(ctx, "bgrewriteaof").Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "a file", func() bool { // then it is no longer in use
		info := operator.Info(ctx, "persistence").Val()
		return contains(info, "aof_rewrite_in_progress:0") && !contains(info, "aof_base_size:0")
	})
	for _, command := range [][]any{
		{"config", "set", "appendonly", "no"},
		{"config", "set", "rdb-key-save-delay", 10_000_000}, // a rewrite takes ten seconds for each key
		{"config", "set", "appendonly", "yes"},
		{"expire", "firn", 3600},
	} {
		if err := operator.Do(ctx, command...).Err(); err != nil {
			t.Fatalf("%v: %v", command, err)
		}
	}
	findings, err := s.Traits().Examine(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if f := findings[0]; f.Verdict != store.Doubtful || !contains(f.Says, "is being rewritten") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
	if f := findings[1]; f.Verdict != store.Bad || !contains(f.String(), "expires in 1h") || !contains(f.Advice, "PERSIST firn") {
		t.Errorf("%v: %v", f.Verdict, f)
	}
}

// A client uses the first Sentinel that answers, and a random server of a cluster.
func TestExamineFindsTwoSetupsInOneURL(t *testing.T) {
	t.Parallel()
	var hosts [2][]string
	for range 2 {
		hosts[0] = append(hosts[0], servers.Sentinel(t, "main", servers.Redis(t).Addr(), 1).Addr())
		node := servers.Redis(t, "--cluster-enabled", "yes").Addr()
		hosts[1] = append(hosts[1], node)
		if err := raw(t, node).ClusterAddSlotsRange(context.Background(), 0, 16383).Err(); err != nil {
			t.Fatal(err)
		}
		agreed(t, 1, node)
	}
	for i, settings := range []string{"?master=main", "?cluster=true"} {
		one := "redis://" + hosts[i][0] + "," + servers.Silent(t) + settings
		if f := verdict(t, open(t, one)); f.Verdict != store.Good {
			t.Errorf("%s: %v: %v", one, f.Verdict, f)
		}
		two := "redis://" + strings.Join(hosts[i], ",") + settings
		if f := verdict(t, open(t, two)); f.Verdict != store.Bad || !contains(f.Says, "names another primary") {
			t.Errorf("%s: %v: %v", two, f.Verdict, f)
		}
	}
}

func member(text string) redis.Z { return redis.Z{Member: text} }

// A tool that copies members while they change leaves this behind, or ZUNIONSTORE with a backup.
func TestAKeyWithTwoMembersIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servers.Redis(t)
	s, operator := open(t, "redis://"+server.Addr()), raw(t, server.Addr())
	confirmed(t, s, "k")
	confirmed(t, s, "other")
	older := operator.ZRange(ctx, "firn", 0, 0).Val()[0]
	confirmed(t, s, "k")
	e, err := s.Get(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := operator.ZAdd(ctx, "firn", member(older)).Err(); err != nil {
		t.Fatal(err)
	}
	_, got := s.Get(ctx, "k")
	_, listed := s.List(ctx, "")
	_, written := s.CompareAndSwap(ctx, "k", e.Revision, nil)
	for what, err := range map[string]error{"get": got, "list": listed, "compare-and-swap": written} {
		expect(t, what, err, store.ErrRefused, "two members", "remove the older")
	}
	confirmed(t, s, "other")
	if err := operator.ZRem(ctx, "firn", older).Err(); err != nil {
		t.Fatal(err)
	}
	confirmed(t, s, "k")
}

// Another program that uses the key, or ZINCRBY, may leave this behind: the set is then not in the
// order of its members, and existing members are not found.
func TestAMemberWithAScoreIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servers.Redis(t)
	s, operator := open(t, "redis://"+server.Addr()), raw(t, server.Addr())
	confirmed(t, s, "k")
	for _, foreign := range []redis.Z{{Score: 1, Member: "a"}, {Score: -1, Member: "z"}} {
		if err := operator.ZAdd(ctx, "firn", foreign).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(ctx, "k"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v: %v, and it was to hide the key", foreign, err)
		}
		_, err := s.CompareAndSwap(ctx, "k", 0, nil)
		expect(t, "a register that looks new", err, store.ErrRefused, "score", "remove it")
		if err := operator.ZRem(ctx, "firn", foreign.Member).Err(); err != nil {
			t.Fatal(err)
		}
		confirmed(t, s, "k")
	}
}

// A script is not rolled back. So every reason for a refusal must be found before anything is written.
func TestARefusedWriteIsNotApplied(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servers.Redis(t)
	operator := raw(t, server.Addr())
	allowed := []string{"+zrangebylex", "+zcount", "+eval", "+evalsha", "+time", "+info", "+config|get", "+wait"}
	for user, more := range map[string]string{"adder": "+zadd", "remover": "+zrem"} {
		args := []any{"ACL", "SETUSER", user, "on", ">geheim", "~*", more}
		for _, a := range allowed {
			args = append(args, a)
		}
		if err := operator.Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	all := open(t, "redis://"+server.Addr())
	if _, err := all.CompareAndSwap(ctx, "k", 0, []byte("before")); err != nil {
		t.Fatal(err)
	}
	before := operator.ZRange(ctx, "firn", 0, -1).Val()
	for _, user := range []string{"adder", "remover"} {
		s := open(t, "redis://"+user+":geheim@"+server.Addr())
		e, err := s.Get(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.CompareAndSwap(ctx, "k", e.Revision, []byte("after"))
		expect(t, user, err, store.ErrRefused, "+zrem")
		if after := operator.ZRange(ctx, "firn", 0, -1).Val(); !slices.Equal(after, before) {
			t.Errorf("%s was refused, and the set has %q", user, after)
		}
	}
}

func TestARedisThatGoesOnAfterAFailedSyncIsBad(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]store.Verdict{"5.0.14": store.Bad, "6.0.20": store.Bad, "6.2.0": store.Good, "7.0.15": store.Good, "": store.Good} {
		is := redisstore.Persists(map[string]string{"redis_version": version, "aof_enabled": "1", "aof_last_bgrewrite_status": "ok"}, map[string]string{"appendfsync": "always"}, nil)
		says := contains(is.Says, ": it goes on when its file cannot be synced") && contains(is.Advice, "update to Redis 6.2 or later")
		if is.Verdict != want || says != (want == store.Bad) {
			t.Errorf("%q: %v", version, is)
		}
	}
}
