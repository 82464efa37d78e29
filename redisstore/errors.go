package redisstore

import (
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
)

const (
	permissions = "the user needs: +zrangebylex +zcount +zadd +zrem +eval +evalsha +time +info +wait, and the key; +select for a database other than 0, +cluster in a cluster; " +
		"+config|get +ttl +pubsub|numsub for firn doctor"
	unknown   = "it lacks a command that Firn needs, or the command was renamed"
	isReplica = "it is a replica: name the primary, or Sentinels and ?master=NAME"
	// astray is the hint where the servers of a cluster send each other's clients away.
	astray = "the servers of the cluster do not agree on which of them has the key, or name addresses that lead elsewhere from here: see redis-cli --cluster check, and cluster-announce-ip"
	// databases is the hint where a server does not have the database. If it had it before a restart, it applied the
	// writes of its append-only file to database 0.
	databases = "end the URL with a number below the server's setting databases, such as redis://HOST:6379/0. If that setting was lowered, " +
		"restart the server with the former value instead, before it rewrites its append-only file"
	// merged refuses both members, of a key or of the record of the replicas: nothing shows which is the
	// later, and the older one would bring back a superseded state.
	merged = "the key has two members, as when a copy was merged into the set: remove the older one"
)

// replies maps the beginning of a server's error reply to a kind and a hint. All but the first group
// mean that nothing was written: a script gets them at its first write or before.
var replies = []struct {
	begin string // after "ERR ", separated by |
	kind  error
	hint  string
}{
	{"LOADING", store.ErrUnavailable, "it is loading its data: try again"},
	{"BUSY", store.ErrUnavailable, "it is running another script"},
	{"CLUSTERDOWN", store.ErrUnavailable, "the cluster has no server for this key"},
	{"MASTERDOWN", store.ErrUnavailable, "its primary is unreachable"},
	{"TRYAGAIN", store.ErrUnavailable, "the key is being moved: try again"},
	{"max number of clients", store.ErrUnavailable, "raise maxclients"},

	{"NOAUTH", store.ErrRefused, "it requires a password: redis://:PASSWORD@HOST"},
	{"WRONGPASS", store.ErrRefused, "check user and password"},
	{"AUTH", store.ErrRefused, "it has no password, or the user does not exist: check the URL"},
	{"NOPERM|The user executing the script can't run|ACL failure in script", store.ErrRefused, permissions},
	{"READONLY", store.ErrRefused, isReplica},
	{"WRONGTYPE", store.ErrRefused, "the key holds something else: name another with ?key=NAME"},
	{"OOM", store.ErrRefused, "its memory is full: raise maxmemory"},
	{"MISCONF", store.ErrRefused, "it cannot write to its disk: see its log"},
	{"NOREPLICAS", store.ErrRefused, "it has fewer replicas than min-replicas-to-write"},
	{"DB index|invalid DB index", store.ErrRefused, databases},
	{"SELECT is not allowed in cluster mode", store.ErrRefused, "a cluster has database 0 only"},
	{"unknown command|Unknown Redis command", store.ErrRefused, unknown},
	{"Write commands not allowed after non deterministic", store.ErrRefused, "set lua-replicate-commands yes"},
	{"This instance has cluster support disabled", store.ErrRefused, "it is not a cluster: leave out ?cluster=true, and name one host"},
	{"MOVED|ISCLUSTER", store.ErrRefused, "it belongs to a cluster: add ?cluster=true"},
	{"CONFLICT", store.ErrConflict, ""},
	{"OTHER|LATE", store.ErrRefused, "find out which server is the primary, and try again"},
	{"RECORD", store.ErrRefused, "the record of the replicas is malformed: remove the member, then set the number with firn store replicas N"},
	{"TWICE", store.ErrRefused, merged},
	{"SCORE", store.ErrRefused, "a member of the set has a score other than 0, which hides other members: find it with ZRANGE firn 0 -1 WITHSCORES, remove it, and give each program its own key with ?key=NAME"},
	{"DENIED", store.ErrRefused, "it runs in protected mode: set a password, or connect over loopback"},
}

// before returns a possible prefix of a reply's text: Redis before 7.0 puts it before an error that a
// command returned to a script. It is compiled on first use: most programs never see such an error.
var before = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(ERR Error running script .*@user_script: ?\d+: -?)?(ERR )?`)
})

// classifyInCluster is classify for a client that follows a cluster, and so knows of it.
func classifyInCluster(err error) (hint string, kind error) {
	if redis.HasErrorPrefix(err, "MOVED ") || redis.HasErrorPrefix(err, "ASK ") {
		return astray, store.ErrUnavailable
	}
	return classify(err)
}

// classify returns an error's kind and a hint. Errors that are not known to be refusals are
// ErrUnavailable: the outcome of a write is then unknown.
func classify(err error) (hint string, kind error) {
	says := func(text string) bool { return strings.Contains(err.Error(), text) }
	var reply redis.Error
	switch {
	case says("first record does not look like a TLS handshake"):
		hint = "it does not speak TLS: use redis:// instead of rediss://"
	case says("redis: all sentinels specified in configuration are unreachable"):
		hint = "no Sentinel answers, or they do not know ?master=NAME"
	case errors.As(err, &reply):
		text := before().ReplaceAllString(reply.Error(), "")
		for _, r := range replies {
			for begin := range strings.SplitSeq(r.begin, "|") {
				if strings.HasPrefix(text, begin) {
					return r.hint, r.kind
				}
			}
		}
	case says("EOF"), says("reset by peer"):
		hint = "if it speaks TLS only, use rediss://"
	}
	return hint, store.ErrUnavailable
}
