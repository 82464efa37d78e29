package redisstore_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// needed are the permissions that docs/stores.md lists for a single server, examining those for firn doctor alone.
var (
	needed    = []string{"+zrangebylex", "+zcount", "+zadd", "+zrem", "+eval", "+evalsha", "+time", "+info", "+wait"}
	examining = []string{"+config|get", "+ttl", "+pubsub|numsub"}
)

// allow makes a user with permissions, and only the key of the set.
func allow(t *testing.T, at *redis.Client, user string, permissions ...string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", user, "on", ">geheim", "~firn"}
	for _, p := range permissions {
		args = append(args, p)
	}
	if err := at.Do(context.Background(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

// use does what a process does, and firn doctor: it opens the store, reads, lists, writes, looks at the clock and
// examines the server. It returns the first error, and the findings.
func use(t *testing.T, url string) ([]store.Finding, error) {
	t.Helper()
	ctx := context.Background()
	s, err := redisstore.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, err := s.List(ctx, ""); err != nil {
		return nil, err
	}
	if _, err := s.Traits().Clock.Now(ctx); err != nil {
		return nil, err
	}
	for range 2 { // the second write replaces
		if _, err := write(s, "k"); err != nil {
			return nil, err
		}
	}
	return s.Traits().Examine(ctx)
}

// denials returns what the server has denied, and forgets it.
func denials(t *testing.T, at *redis.Client) (all []string) {
	t.Helper()
	entries, err := at.ACLLog(context.Background(), 100).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Reason+" "+e.Object)
	}
	if err := at.ACLLogReset(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheListOfPermissionsSuffices(t *testing.T) {
	t.Parallel()
	primary, _ := withReplicas(t, 1)
	nodes, _ := cluster(t)
	for _, test := range []struct {
		what string
		at   []string
		url  string
		more []string
	}{
		{"a server with a replica", []string{primary.Addr()}, "redis://firn:geheim@" + primary.Addr(), nil},
		{"another database", []string{primary.Addr()}, "redis://other:geheim@" + primary.Addr() + "/2", []string{"+select"}},
		{"a cluster", nodes[:], "redis://firn:geheim@" + nodes[0] + "?cluster=true", []string{"+cluster"}},
	} {
		user, _, _ := strings.Cut(strings.TrimPrefix(test.url, "redis://"), ":")
		for _, addr := range test.at {
			allow(t, raw(t, addr), user, slices.Concat(needed, examining, test.more)...)
		}
		if findings, err := use(t, test.url); err != nil || strings.Contains(all(findings), "grant") {
			t.Errorf("%s: %v, %s", test.what, err, all(findings))
		}
		for _, addr := range test.at {
			// The client asks a cluster for COMMAND, and can do without.
			if denied := slices.DeleteFunc(denials(t, raw(t, addr)), func(d string) bool { return d == "command command" }); len(denied) > 0 {
				t.Errorf("%s: the server denied %q", test.what, denied)
			}
		}
	}
}

func all(findings []store.Finding) (text string) {
	for _, f := range findings {
		text += f.String() + "\n"
	}
	return text
}

// Whatever is missing, the error or a finding says so.
func TestEachMissingPermissionIsNamed(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	operator := raw(t, server.Addr())
	every := slices.Concat(needed, examining)
	for i, missing := range every {
		user := "without" + string(rune('a'+i))
		allow(t, operator, user, slices.Delete(slices.Clone(every), i, i+1)...)
		if err := operator.ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		findings, err := use(t, "redis://"+user+":geheim@"+server.Addr())
		switch {
		case missing == "+wait": // then the write has happened
			expect(t, missing, err, store.ErrUnavailable, "not confirmed", "the user needs: ", missing)
		case slices.Contains(needed, missing):
			expect(t, missing, err, store.ErrRefused, "the user needs: ", missing)
		case err != nil:
			t.Errorf("%s is for firn doctor alone: %v", missing, err)
		case !slices.ContainsFunc(findings, func(f store.Finding) bool { return f.Verdict == store.Doubtful && strings.Contains(f.Advice, missing) }):
			t.Errorf("without %s: %s", missing, all(findings))
		}
	}
}

// Two servers that each say that the other one has the key.
func TestAClusterThatSendsItsClientsInCirclesIsNamed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	nodes, _ := cluster(t)
	one, two := raw(t, nodes[0]), raw(t, nodes[1])
	slot := one.ClusterKeySlot(ctx, "firn").Val()
	for node, other := range map[*redis.Client]*redis.Client{one: two, two: one} {
		if err := node.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", other.Do(ctx, "CLUSTER", "MYID").Val()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	err := try("redis://" + nodes[0] + "?cluster=true")
	expect(t, "a circle", err, store.ErrUnavailable, "do not agree", "redis-cli --cluster check")
	if strings.Contains(err.Error(), "add ?cluster=true") {
		t.Errorf("it advises to add what the URL has: %v", err)
	}
}

// A library must leave standard error to its program. The client writes there when it cannot connect, or asks Sentinels.
func TestOpenWritesNothingToStandardError(t *testing.T) {
	t.Parallel()
	const variable = "REDISSTORE_URLS"
	if urls := os.Getenv(variable); urls != "" {
		for url := range strings.FieldsSeq(urls) {
			_ = try(url) // it says by its error alone what went wrong
		}
		return
	}
	server := servers.Redis(t)
	sentinel := servers.Sentinel(t, "main", server.Addr(), 1)
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), variable+"=redis://"+servers.Nowhere(t)+" redis://"+servers.Nowhere(t)+"?cluster=true redis://"+
		servers.Nowhere(t)+"?master=main redis://"+sentinel.Addr()+"?master=main redis://"+sentinel.Addr()+"?master=other")
	var stderr strings.Builder
	child.Stderr = &stderr
	if err := child.Run(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v: %s", err, stderr.String())
	}
}
