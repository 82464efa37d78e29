package respapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A client that asks whether a counter exists, or whether it expires, gets the answers of a Redis in which the counter
// exists and never expires.
func TestQuestionsAboutACounterAreAnsweredAsByRedis(t *testing.T) {
	_, _, firn := serve(t, kinds)
	redis := servers.Redis(t).Addr()
	for _, hello := range []string{"HELLO 2", "HELLO 3"} {
		there, here := dial(t, redis), dial(t, firn)
		for _, c := range []*client{there, here} {
			c.ask(hello)
			c.ask("SET items 0 NX")
		}
		for _, command := range []string{
			"SETNX items 0", "SETNX items -5", "SET items 0 NX", "set items 0 nx", "EXISTS items", "EXISTS items items", "EXISTS nothere", "EXISTS nothere items",
			"TTL items", "PTTL items", "EXPIRETIME items", "PEXPIRETIME items", "TTL nothere", "PTTL nothere", "PERSIST items", "PERSIST nothere",
			"EXPIRE nothere 10", "EXPIRE items x", "UNWATCH", "CLUSTER SLOTS", "EVAL x -1", "EVAL x 3 a", "CLIENT CACHING yes",
			"MULTI", "SET items 0 NX", "UNWATCH", "EXEC",
			"SETNX items", "SET items", "EXISTS", "TTL", "UNWATCH x", "EXPIRE items", "PERSIST a b",
		} {
			want, got := there.ask(command), here.ask(command)
			if strings.HasPrefix(command, "EVAL x -1") { // Redis has words of its own for it
				want = "-ERR Number of keys can't be greater than number of args"
			}
			if got != want {
				t.Errorf("%s: %q, Redis says %q", command, got, want)
			}
		}
	}
}

func TestWhatCouldMisleadIsRefusedWithWhatToUse(t *testing.T) {
	cfg := settings.Config{Namespaces: map[string]settings.Namespace{
		"items": {Kind: "segment"}, "late": {Kind: "segment", Counted: settings.Counted{From: 1000}}, "orders": {}, "uid": {Kind: "uuid"},
	}}
	_, _, address := serve(t, cfg)
	c := dial(t, address)
	for command, want := range map[string]string{
		"GET items":                `GET: a namespace has no value .* INCR items returns .*`,
		"get a:b":                  `GET: .* INCR name returns .*`,
		"MGET items orders":        `MGET: .*`,
		"GETSET items 5":           `GETSET: .* ids would repeat\. .*`,
		"SET items 5":              `SET: .* ids would repeat\. .from. in the configuration sets its first id, .*`,
		"SET items 0 XX":           `SET: .* ids would repeat\. .*`,
		"SET items 0 GET NX":       `SET: .* ids would repeat\. .*`,
		"SET items 0 NX EX 60":     `SET: a namespace does not expire\. .*`,
		"SET items 0 PX 60000 NX":  `SET: a namespace does not expire\. .*`,
		"SET items 0 NX GET":       `SET: a namespace has no value to read.* INCR items returns .*`,
		"SET items lock NX PX 900": `SET: Firn keeps neither values nor locks\. .*`,
		"SET items lock EX 9 NX":   `SET: Firn keeps neither values nor locks\. .*`,
		"FCALL f 1 items":          `FCALL: scripts are not run\. INCR name .*`,
		"FUNCTION LIST":            `FUNCTION: scripts are not run\. INCR name .*`,
		"SET items 6f1c-owner NX":  `SET: Firn keeps neither values nor locks\. .*`,
		"SETNX items 6f1c-owner":   `SETNX: Firn keeps neither values nor locks\. .*`,
		"SETNX items 1":            `SETNX: the ids of items may begin below the value .*`,
		"SETNX late 1000":          `SETNX: the ids of late may begin below the value .*`,
		"SET orders 1 NX":          `SET: the ids of orders may begin below the value .*`,
		"DEL items":                `DEL: a namespace cannot be deleted.*`,
		"EXPIRE items 0":           `EXPIRE: a namespace cannot be deleted.*`,
		"PEXPIREAT items -1":       `PEXPIREAT: a namespace cannot be deleted.*`,
		"RENAME items other":       `RENAME: a namespace cannot be deleted.*`,
		"FLUSHALL":                 `FLUSHALL: a namespace cannot be deleted.*`,
		"DECR items":               `DECR: ids never go back\. INCR items .*`,
		"INCRBY items -3":          `INCRBY: ids never go back\. INCR items .*`,
		"INCRBYFLOAT items 1":      `INCRBYFLOAT: .* INCR items`,
		"WATCH items":              `WATCH: .* INCR items is atomic.*`,
		"EVAL \"return 1\" 0":      `EVAL: scripts are not run\. INCR name .*`,
		"EVALSHA 0123 1 items":     `EVALSHA: scripts are not run\. INCR items .* FIRN\.NEXT items COUNT n .*`,
		"SCRIPT LOAD \"return 1\"": `SCRIPT: scripts are not run\. .*`,
		"HINCRBY items orders 1":   `HINCRBY: Firn has no hashes, .* INCR orders\. .*`,
		"SUBSCRIBE items":          `SUBSCRIBE: Firn sends no messages`,
		"KEYS *":                   `KEYS: GET /v1/namespaces .*`,
		"WAIT 1 100":               `WAIT: .*`,
	} {
		if got := c.ask(command); !regexp.MustCompile(`^-FIRN unsupported: ` + want + `$`).MatchString(got) {
			t.Errorf("%s: %q, want %s", command, got, want)
		}
	}
	for command, want := range map[string]string{
		"SETNX uid 0": "-FIRN not_a_number: ", "SETNX nothere 0": "-FIRN unknown_namespace: ", "SET items 0 NX KEEP": "-ERR syntax error",
		"SETNX late 999": ":0", "TTL a:b": "-FIRN bad_request: ", "EXISTS items :1:items": "-FIRN bad_request: ", "EXPIRE items 60": ":0",
	} {
		if got := c.ask(command); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %s", command, got, want)
		}
	}
	if got := c.ask("INCR items"); got != ":1" {
		t.Errorf("after all that: %s", got)
	}
}

// A transaction must not count if a command in it is refused.
func TestARefusedCommandAbortsTheTransaction(t *testing.T) {
	_, _, address := serve(t, kinds)
	c := dial(t, address)
	for command, want := range map[string]string{"INCR items": "+QUEUED", "GET items": "-FIRN unsupported: GET: "} {
		c.ask("MULTI")
		c.ask("INCR items")
		if got := c.ask(command); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", command, got)
		}
		if got := c.ask("EXEC"); strings.HasPrefix(got, "-EXECABORT") != (command == "GET items") {
			t.Errorf("with %s: %s", command, got)
		}
	}
}

// The names of namespaces that do not exist are made by neither question.
func TestQuestionsMakeNoNamespace(t *testing.T) {
	_, service, address := serve(t, settings.Config{})
	c := dial(t, address)
	for _, command := range []string{"EXISTS a", "TTL b", "EXPIRE c 10", "PERSIST d"} {
		c.ask(command)
	}
	if got := c.ask("EXISTS a"); got != ":1" {
		t.Errorf("a name that INCR would serve: %s", got)
	}
	before := service.Generation()
	if got := c.ask("SETNX e 0"); got != ":0" || service.Generation() == before {
		t.Errorf("SETNX: %s", got)
	}
	if before != 1 && service.Generation() != before+1 {
		t.Errorf("%d namespaces were made", service.Generation()-before)
	}
}

func TestACallerIsToldNothingOfOthersNamespaces(t *testing.T) {
	sum := sha256.Sum256([]byte("secret"))
	_, _, address := serve(t, settings.Config{Namespaces: kinds.Namespaces, Tokens: []settings.Token{
		{Name: "shop", SHA256: hex.EncodeToString(sum[:]), Namespaces: []string{"items"}},
	}})
	c := dial(t, address)
	if got := c.ask("GET items"); !strings.HasPrefix(got, "-NOAUTH") {
		t.Error(got)
	}
	c.ask("AUTH secret")
	for _, command := range []string{"EXISTS txn", "EXISTS nothere", "SETNX txn 0", "TTL txn", "EXPIRE txn 1", "EVALSHA " + nextID + " 2 txn x", "EVAL \"" + djangoIncr + "\" 1 txn 1"} {
		if got := c.ask(command); !strings.HasPrefix(got, "-NOPERM ") {
			t.Errorf("%s: %s", command, got)
		}
	}
	if got := c.ask("EXISTS items"); got != ":1" {
		t.Error(got)
	}
}

// Scripts as libraries send them.
const (
	nextID     = "e57ac7b74498ebd39874c49d73184be9513f8789" // Redisson's RIdGenerator
	tryInit    = "3c1028765bf9c80606aa6fce12132bf9e3d5a9a1"
	tryInitLua = "redis.call('setnx', KEYS[1], ARGV[1]); return redis.call('setnx', KEYS[2], ARGV[2]); "
	djangoIncr = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
)

func TestTheIDGeneratorOfRedissonGetsRanges(t *testing.T) {
	_, _, address := serve(t, settings.Config{Namespaces: map[string]settings.Namespace{
		"items": {Kind: "segment", Segment: settings.Segment{MinStep: 10}}, "odd": {Kind: "segment", Segment: settings.Segment{Stride: 2, Offset: 1}},
		"txn": {Kind: "sequence"}, "orders": {}, "uid": {Kind: "uuid"}, "late": {Kind: "segment", Counted: settings.Counted{From: 500}},
	}})
	c := dial(t, address)
	for _, step := range []struct{ say, want string }{
		{"EVALSHA " + tryInit + " 2 items {items}:allocation 1 1000", `:0`},
		{"SCRIPT EXISTS " + tryInit + " 0123", `\*2 :1 :0`},
		{"SCRIPT LOAD \"" + tryInitLua + "\"", tryInit},
		{"EVAL \"" + tryInitLua + "\" 2 items {items}:allocation 1 1000", `:0`},
		{"EVALSHA " + tryInit + " 2 late {late}:allocation 500 1000", `:0`},
		{"EVALSHA " + tryInit + " 2 late {late}:allocation 501 1000", `-FIRN unsupported: .*may begin below.*`},
		{"EVALSHA " + tryInit + " 2 late {late}:allocation", `-ERR syntax error`},
		{"EVALSHA " + nextID + " 2 items {items}:allocation", `\*2 :1 :10`},
		{"INCR items", `:11`},
		{"EVALSHA " + nextID + " 2 items {items}:allocation", `\*2 :12 :(9|10)`},
		{"evalsha " + strings.ToUpper(nextID) + " 2 items {items}:allocation", `\*2 :2[12] :(9|10)`},
		{"EVALSHA " + nextID + " 2 txn {txn}:allocation", `\*2 :1 :1000`},
		{"INCR txn", `:1001`},
		// These have no ranges of numbers in a row.
		{"EVALSHA " + nextID + " 2 odd {odd}:allocation", `\*2 :1 :1`},
		{"EVALSHA " + nextID + " 2 odd {odd}:allocation", `\*2 :3 :1`},
		{"EVALSHA " + nextID + " 2 orders {orders}:allocation", `\*2 :\d{16,19} :1`},
		{"EVALSHA " + nextID + " 2 uid {uid}:allocation", `-FIRN not_a_number: .*`},
		{"EVALSHA " + nextID + " 2 nothere {nothere}:allocation", `-FIRN unknown_namespace: .*`},
		{"EVALSHA " + nextID + " 0", `-FIRN unsupported: EVALSHA: scripts are not run\..*`},
	} {
		if got := c.ask(step.say); !regexp.MustCompile(`^` + step.want + `$`).MatchString(got) {
			t.Errorf("%s: %q, want %s", step.say, got, step.want)
		}
	}
}

func TestTheScriptsOfDjangoRedisCount(t *testing.T) {
	_, _, address := serve(t, kinds)
	c := dial(t, address)
	ofKey := "\n  local exists = redis.call('EXISTS', KEYS[1])\n  if (exists == 1) then\n    return redis.call('INCRBY', KEYS[1], ARGV[1])\n  else return false end\n"
	for i, text := range []string{ofKey, "\n\t" + djangoIncr + "\n"} {
		command := fmt.Sprintf("*5\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n1\r\n$5\r\nitems\r\n$1\r\n1\r\n", len(text), text)
		c.send(command)
		if got := c.reply(); got != fmt.Sprintf(":%d", i+1) {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := c.ask("EVAL \"" + djangoIncr + "\" 1 items -1"); !strings.HasPrefix(got, "-FIRN unsupported: INCRBY: ids never go back.") {
		t.Error(got)
	}
	if got := c.ask("EVAL \"" + djangoIncr + "\" 1 items"); got != "-ERR syntax error" {
		t.Error(got)
	}
}
