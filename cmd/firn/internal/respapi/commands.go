package respapi

import (
	"errors"
	"slices"
	"strings"
)

var errHTTP = errors.New("the client speaks HTTP")

// A command is a supported command.
type command struct {
	name            string
	arity           int // arguments with the name; at least so many if negative
	unauthenticated bool
	atOnce          bool // also between MULTI and EXEC
	keys            bool // the first argument is a namespace
	flags           []string
	group           string
	summary         string
	answer          func(c *conn, args [][]byte)
}

func (k *command) takes(n int) bool { return n == k.arity || k.arity < 0 && n >= -k.arity }

// What commands do that have no effect.
const (
	notSet = "0, not set: a namespace does not expire."
	never  = "-1: a namespace does not expire."
)

// A table holds the supported commands, and why others are refused. redis.md has the same.
type table struct {
	byName   map[string]*command
	sorted   []string
	refusals map[string]string
}

// maxArguments bounds the work of a supported command: CONFIG GET compares each of its patterns with each setting, for example.
// Two are its name and a subcommand.
const maxArguments = 2 + 16

// maxName is the maximum length of a command's name.
const maxName = 16

func newTable() *table {
	t := &table{byName: map[string]*command{}, refusals: map[string]string{}}
	for _, r := range refusals {
		for name := range strings.FieldsSeq(r.commands) {
			t.refusals[name] = r.why
		}
	}
	for _, k := range []command{
		{name: "incr", arity: 2, keys: true, flags: []string{"write", "fast"}, group: "ids", summary: "Returns the next id of a namespace.", answer: (*conn).incr},
		{name: "incrby", arity: 3, keys: true, flags: []string{"write", "fast"}, group: "ids", summary: "Takes consecutive ids of a namespace and returns the last.", answer: (*conn).incrBy},
		{name: "firn.next", arity: -2, keys: true, flags: []string{"write"}, group: "ids", summary: "Returns ids of a namespace, of any kind.", answer: (*conn).next},
		{name: "firn.decode", arity: -3, keys: true, flags: []string{"readonly"}, group: "ids", summary: "Takes an id apart.", answer: (*conn).decode},

		{name: "set", arity: -3, keys: true, flags: []string{"write"}, group: "counters", summary: "With NX: null, since the namespace exists.", answer: (*conn).set},
		{name: "setnx", arity: 3, keys: true, flags: []string{"write", "fast"}, group: "counters", summary: "0, since the namespace exists.", answer: (*conn).setNX},
		{name: "exists", arity: -2, keys: true, flags: []string{"readonly", "fast"}, group: "counters", summary: "Counts the names that are namespaces.", answer: (*conn).exist},
		{name: "expire", arity: -3, keys: true, flags: []string{"write", "fast"}, group: "counters", summary: notSet, answer: (*conn).expire},
		{name: "pexpire", arity: -3, keys: true, flags: []string{"write", "fast"}, group: "counters", summary: notSet, answer: (*conn).expire},
		{name: "expireat", arity: -3, keys: true, flags: []string{"write", "fast"}, group: "counters", summary: notSet, answer: (*conn).expire},
		{name: "pexpireat", arity: -3, keys: true, flags: []string{"write", "fast"}, group: "counters", summary: notSet, answer: (*conn).expire},
		{name: "persist", arity: 2, keys: true, flags: []string{"write", "fast"}, group: "counters", summary: "0: a namespace does not expire.", answer: (*conn).persist},
		{name: "ttl", arity: 2, keys: true, flags: []string{"readonly", "fast"}, group: "counters", summary: never, answer: (*conn).ttl},
		{name: "pttl", arity: 2, keys: true, flags: []string{"readonly", "fast"}, group: "counters", summary: never, answer: (*conn).ttl},
		{name: "expiretime", arity: 2, keys: true, flags: []string{"readonly", "fast"}, group: "counters", summary: never, answer: (*conn).ttl},
		{name: "pexpiretime", arity: 2, keys: true, flags: []string{"readonly", "fast"}, group: "counters", summary: never, answer: (*conn).ttl},

		{name: "eval", arity: -3, flags: []string{"noscript"}, group: "scripts", summary: "Answers the scripts of Redisson's and django-redis's counters.", answer: (*conn).eval},
		{name: "evalsha", arity: -3, flags: []string{"noscript"}, group: "scripts", summary: "As EVAL.", answer: func(c *conn, args [][]byte) { c.answerScript(strings.ToLower(string(args[1])), args) }},
		{name: "script", arity: -2, flags: []string{"noscript"}, group: "scripts", summary: "Knows these scripts.", answer: (*conn).script},

		{name: "auth", arity: -2, unauthenticated: true, flags: []string{"noscript", "fast", "no_auth"}, group: "connection", summary: "Says who the client is, by a token.", answer: (*conn).auth},
		{name: "hello", arity: -1, unauthenticated: true, flags: []string{"noscript", "fast", "no_auth"}, group: "connection", summary: "Chooses the version of the protocol.", answer: (*conn).hello},
		{name: "ping", arity: -1, flags: []string{"fast"}, group: "connection", summary: "Answers.", answer: (*conn).ping},
		{name: "echo", arity: 2, flags: []string{"fast"}, group: "connection", summary: "Answers with its argument.", answer: (*conn).echo},
		{name: "select", arity: 2, flags: []string{"fast"}, group: "connection", summary: "Chooses database 0, which is the only one.", answer: (*conn).selectDB},
		{name: "client", arity: -2, group: "connection", summary: "Names the connection, and shows it.", answer: (*conn).client},
		{name: "quit", arity: -1, unauthenticated: true, atOnce: true, flags: []string{"fast", "no_auth"}, group: "connection", summary: "Ends the connection.", answer: (*conn).quit},
		{name: "reset", arity: 1, unauthenticated: true, atOnce: true, flags: []string{"fast", "no_auth"}, group: "connection", summary: "Makes the connection as if it were new.", answer: (*conn).reset},

		{name: "multi", arity: 1, atOnce: true, flags: []string{"fast"}, group: "transactions", summary: "Begins commands that are answered together.", answer: (*conn).multi},
		{name: "exec", arity: 1, atOnce: true, group: "transactions", summary: "Answers them.", answer: (*conn).exec},
		{name: "discard", arity: 1, atOnce: true, flags: []string{"fast"}, group: "transactions", summary: "Forgets them.", answer: (*conn).discard},
		{name: "unwatch", arity: 1, flags: []string{"fast"}, group: "transactions", summary: "Does nothing: nothing is watched.", answer: (*conn).unwatch},

		{name: "command", arity: -1, group: "server", summary: "Lists the commands.", answer: (*conn).command},
		{name: "config", arity: -2, group: "server", summary: "Shows what clients ask a Redis for.", answer: (*conn).config},
		{name: "info", arity: -1, group: "server", summary: "Shows the server.", answer: (*conn).info},
	} {
		t.byName[k.name] = &k
		t.sorted = append(t.sorted, k.name)
	}
	slices.Sort(t.sorted)
	return t
}

// find returns the command of a name in any case.
func (t *table) find(name []byte) (*command, bool) {
	var lower [maxName]byte
	if len(name) > len(lower) {
		return nil, false
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	k, ok := t.byName[string(lower[:len(name)])]
	return k, ok
}

// is reports whether an argument equals a word, ignoring case.
func is(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

func (c *conn) ok() { c.out = append(c.out, "+OK\r\n"...) }

// syntaxError is Redis's answer to arguments that a command does not have.
func (c *conn) syntaxError() { c.refuse("ERR syntax error") }

func (c *conn) notInteger() { c.refuse("ERR value is not an integer or out of range") }

// strings answers a list of texts.
func (c *conn) strings(texts ...string) {
	c.out = appendArray(c.out, len(texts))
	for _, t := range texts {
		c.out = appendBulk(c.out, t)
	}
}

// pairs answers names and their values.
func (c *conn) pairs(texts ...string) {
	c.out = appendMap(c.out, c.version, len(texts)/2)
	for _, t := range texts {
		c.out = appendBulk(c.out, t)
	}
}

// unknownSubcommand is Redis's answer to a subcommand that does not exist.
func (c *conn) unknownSubcommand(args [][]byte) {
	name := strings.ToUpper(string(args[0]))
	c.refuse("ERR unknown subcommand '" + clipped(args[1]) + "'. Try " + name + " HELP.")
}

// wrongArguments is Redis's answer to a subcommand with too few or too many.
func (c *conn) wrongArguments(args [][]byte) {
	c.refuse("ERR wrong number of arguments for '" + strings.ToLower(string(args[0])+"|"+string(args[1])) + "' command")
}
