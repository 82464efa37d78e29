package respapi

import (
	"bytes"
	"slices"
	"strings"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// What frameworks do with a counter besides INCR. A command is answered only if its answer cannot mislead: a namespace
// is a counter that exists, never expires, and has no value that a client could read, set or delete. A client that read a
// value and went on from there would make ids of others. All other commands get an error that names what to use.

// A refusal has commands of Redis that Firn refuses, and why. NAME stands for the key of the command.
type refusal struct{ commands, why string }

// refusals are in the order of redis.md.
var refusals = []refusal{
	{"get mget getrange substr strlen getex getdel dump sort sort_ro", readRefusal},
	{"mset msetnx setex psetex getset setrange append setbit restore", setRefusal},
	{"decr decrby", "ids never go back. INCR NAME returns the next one"},
	{"incrbyfloat", "ids are whole numbers: INCR NAME"},
	{"del unlink rename renamenx move copy migrate flushdb flushall swapdb", deleteRefusal},
	{"watch", "there is no value to watch. INCR NAME is atomic: it needs no transaction"},
	{"eval_ro evalsha_ro", scriptRefusal},
	{"fcall fcall_ro function", strings.ReplaceAll(scriptRefusal, "NAME", "name")}, // their first argument is no key
	{"hincrby hincrbyfloat hset hsetnx hmset hget hmget hgetall hdel zincrby zadd sadd spop srem lpush rpush lpop rpop blpop brpop xadd pfadd", "Firn has no hashes, lists, sets or streams. A namespace is a counter: INCR orders. Use one for each counter"},
	{"subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe publish spublish pubsub monitor", "Firn sends no messages"},
	{"keys scan dbsize randomkey type object memory touch", "GET /v1/namespaces of the HTTP interface lists the namespaces"},
	{"wait waitaof", "an id is answered only once the store has confirmed it, if it needs a store: there is nothing to wait for"},
}

const (
	readRefusal   = "a namespace has no value to read: the next id may already be that of another client. INCR NAME returns an id that nobody else gets"
	setRefusal    = "a namespace counts by itself, and if it were set, ids would repeat. 'from' in the configuration sets its first id, and raises a counter that is lower, as firn next --first does. SET NAME 0 NX is answered"
	deleteRefusal = "a namespace cannot be deleted, renamed or copied, since its ids would repeat. It ends when it is removed from the configuration"
	scriptRefusal = "scripts are not run. INCR NAME returns an id, and FIRN.NEXT NAME COUNT n several"
	lockRefusal   = "Firn keeps neither values nor locks. A namespace is a counter: SET NAME 0 NX, INCR NAME"
	expiryRefusal = "a namespace does not expire. Leave out the time; a namespace of kind number restarts by date"
	startRefusal  = "the ids of NAME may begin below the value that it would have. Use 0 as the value; the first id is set by 'from' in the configuration"
)

// noCluster is Redis's own answer: clients then know that there is no cluster.
const noCluster = "ERR This instance has cluster support disabled"

// refused returns the error of a command that is refused with a reason.
func (t *table) refused(args [][]byte) (text string, ok bool) {
	name := strings.ToLower(string(args[0][:min(len(args[0]), maxName)]))
	switch name {
	case "cluster", "readonly", "readwrite", "asking":
		return noCluster, true
	}
	why, ok := t.refusals[name]
	return unsupported(args, why), ok
}

// unsupported is the error of a command that is refused with a reason.
func unsupported(args [][]byte, why string) string {
	key := "name"
	if len(args) > 1 && settings.CheckName(string(args[1])) == nil {
		key = string(args[1])
	}
	command := strings.ToUpper(string(args[0]))
	return ownError + "unsupported: " + command + ": " + strings.ReplaceAll(why, "NAME", key)
}

// setNX answers SETNX: 0, since the counter exists.
func (c *conn) setNX(args [][]byte) {
	if c.exists(args) {
		c.out = appendInt(c.out, 0)
	}
}

// set answers SET name value NX: null, since the counter exists. All other forms would set it.
func (c *conn) set(args [][]byte) {
	if len(args) < 4 {
		c.refuse(unsupported(args, setRefusal))
		return
	}
	_, number := parseInt(args[2])
	ifAbsent := false
	for _, option := range args[3:] {
		switch {
		case is(option, "nx"):
			ifAbsent = true
		case is(option, "ex"), is(option, "px"), is(option, "exat"), is(option, "pxat"):
			why := expiryRefusal
			if !number {
				why = lockRefusal
			}
			c.refuse(unsupported(args, why))
			return
		case !ifAbsent:
			c.refuse(unsupported(args, setRefusal))
			return
		case is(option, "get"):
			c.refuse(unsupported(args, readRefusal))
			return
		default:
			c.syntaxError()
			return
		}
	}
	if c.exists(args) {
		c.out = appendNull(c.out, c.version)
	}
}

// exists reports whether the counter that a client would create with a value has counted from there on: all its ids are
// above the value. Otherwise it answers an error.
func (c *conn) exists(args [][]byte) bool {
	value, ok := parseInt(args[2])
	if !ok {
		c.refuse(unsupported(args, lockRefusal))
		return false
	}
	return c.existsAbove(args, value)
}

func (c *conn) existsAbove(args [][]byte, value int64) bool {
	ns, err := c.server.front.Find(c.caller, issuing.Ask{Namespace: c.namespace(args[1]), Fits: issuing.Numeric})
	switch {
	case err != nil:
		c.failedFor(args[1], err)
	case value >= ns.First():
		c.refuse(unsupported(args, startRefusal))
	default:
		return true
	}
	return false
}

// exist answers EXISTS: how many of the names INCR would serve.
func (c *conn) exist(args [][]byte) {
	count := int64(0)
	for _, name := range args[1:] {
		there, ok := c.there(name)
		if !ok {
			return
		}
		if there {
			count++
		}
	}
	c.out = appendInt(c.out, count)
}

// there reports whether a namespace exists, or would with its first id. If it is not ok, the error is answered.
func (c *conn) there(name []byte) (there, ok bool) {
	there, err := c.server.front.Exists(c.caller, string(name))
	if err != nil {
		c.failedFor(name, err)
		return false, false
	}
	return there, true
}

// expire answers EXPIRE and its like: 0, the time was not set.
func (c *conn) expire(args [][]byte) {
	switch n, ok := parseInt(args[2]); {
	case !ok:
		c.notInteger()
	case n <= 0: // Redis would delete it
		c.refuse(unsupported(args, deleteRefusal))
	default:
		c.persist(args)
	}
}

// persist answers PERSIST: 0, there was no time to remove.
func (c *conn) persist(args [][]byte) {
	if _, ok := c.there(args[1]); ok {
		c.out = appendInt(c.out, 0)
	}
}

// ttl answers TTL and its like: -1 if the namespace exists, since it does not expire, else -2.
func (c *conn) ttl(args [][]byte) {
	there, ok := c.there(args[1])
	switch {
	case !ok:
	case there:
		c.out = appendInt(c.out, -1)
	default:
		c.out = appendInt(c.out, -2)
	}
}

// unwatch answers UNWATCH, which some libraries send when they are done with a connection: nothing is watched.
func (c *conn) unwatch([][]byte) { c.ok() }

// failedFor answers an error of the service about a namespace. A colon in the name is most often a client's own prefix.
func (c *conn) failedFor(name []byte, err error) {
	f := failure.Of(err)
	text := errorText(f)
	if bytes.IndexByte(name, ':') >= 0 && slices.Contains([]string{"bad_request", "unknown_namespace"}, f.Code) {
		text += "; names have no colon: if your client puts a prefix before its keys, turn that off"
	}
	c.fail(text)
}
