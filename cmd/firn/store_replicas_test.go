package main

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store/storetest/servers"
)

func TestReplicasOfARedisCanBeShownAndLowered(t *testing.T) {
	t.Parallel()
	storeurl.QuietRedis()
	run := session(t)
	primary := servers.Redis(t, "--repl-diskless-sync-delay", "0")
	replica := servers.Replica(t, primary.Addr())
	c := redis.NewClient(&redis.Options{Addr: primary.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	online := func() bool {
		info := c.Info(t.Context(), "replication").Val()
		return strings.Contains(info, "state=online") && !strings.Contains(info, "offset=0,")
	}
	until(t, "the replica to be online", online)
	url := "redis://" + primary.Addr()
	for _, step := range []struct {
		before func()
		args   string
		status int
		want   string
	}{
		{nil, "store replicas", 0, "recorded  0\nattached  1\nonline    1\ncaught up 1\n"},
		{nil, "next", 0, "\n"},
		{nil, "store replicas", 0, "recorded  1\nattached  1\nonline    1\ncaught up 1\n"},
		{nil, "store replicas 0", 1, "refused: 0 replicas, but 1 online: stop the ones to remove first"},
		{nil, "store replicas 1", 0, "writes now need 1 replica (before: 1)\n"},
		{nil, "doctor", 0, "1 recorded, 1 attached, 1 of them online, 1 caught up; a write waits for 1\n"},
		{func() { replica.Kill(); until(t, "the replica to be gone", func() bool { return !online() }) }, "store replicas", 0, "No write is confirmed: start the missing replicas, or lower the number with firn store replicas 0.\n"},
		{nil, "doctor", 1, "lower the number: firn store replicas 0\n"},
		{nil, "store replicas 0", 0, "writes now need 0 replicas (before: 1); new processes wait once until running holders have"},
		{nil, "store replicas", 0, "recorded  0 (lowered at 2"},
		{nil, "store replicas --json", 0, `{"recorded":0,"lowered":"2`},
		{nil, "store replicas 1", 1, "1 replicas, but 0 online, and no write would be confirmed: attach them, and the number rises by itself; or add --expected"},
		{nil, "store replicas", 0, "recorded  0 "},
		{nil, "store replicas 1 --expected", 1, "applied, but not confirmed: 0 of 1 replicas have it"},
		{nil, "store replicas 1", 1, "applied, but not confirmed: 0 of 1 replicas have it"}, // it is recorded
		{nil, "store replicas 0", 0, "writes now need 0 replicas (before: 1)"},
		{nil, "store replicas many", 2, `"many" replicas: 0 to 100 are allowed`},
		{nil, "store replicas 1 2", 2, "name one number"},
		{nil, "store", 0, "firn store [command]"},
		{nil, "store size", 2, `store "size": make, replicas are allowed`},
	} {
		if step.before != nil {
			step.before()
		}
		status, out := run([]string{"FIRN_STORE=" + url}, strings.Fields(step.args)...)
		if status != step.status || !strings.Contains(out, step.want) {
			t.Errorf("firn %s exits with %d:\n%s", step.args, status, out)
		}
	}
	if status, out := run(nil, "store", "replicas", "--store", "memory:"); status != 2 || !strings.Contains(out, "only a Redis counts its replicas") {
		t.Errorf("%d: %s", status, out)
	}
}
