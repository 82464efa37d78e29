package respapi

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by it
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// A script is one that is not run, but answered as it would answer.
type script func(c *conn, keys, args [][]byte)

// scripts are known by their SHA1, with and without white space, since EVALSHA has the SHA1 alone and libraries indent.
var scripts = map[string]script{
	// RIdGenerator.tryInit of Redisson, the same in 3.16 to 4.0
	"3c1028765bf9c80606aa6fce12132bf9e3d5a9a1": (*conn).initIDGenerator,
	"e6c36675ec4c8af1d386209358036eb68e804580": (*conn).initIDGenerator,
	// RIdGenerator.nextId
	"e57ac7b74498ebd39874c49d73184be9513f8789": (*conn).idsForGenerator,
	"d34e9c3b4c8f3ad5d5004de7dac48e0a2230e9dd": (*conn).idsForGenerator,
	// incr of django-redis, of a key that must exist, and of any
	"280c81bd93d75c279dc0f3c5cb43208a5421dd76": (*conn).incrByScript,
	"67d4d606295e3ec2d0af09176074a741d7204446": (*conn).incrByScript,
}

// nameOf returns the name of a script.
func nameOf(text []byte) string {
	sum := sha1.Sum(text) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// spaceless returns a script without white space, which has no meaning in those that are known.
func spaceless(text []byte) []byte {
	return []byte(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, string(text)))
}

// eval answers EVAL script numkeys key… arg….
func (c *conn) eval(args [][]byte) { c.answerScript(nameOf(spaceless(args[1])), args) }

func (c *conn) answerScript(name string, args [][]byte) {
	count, ok := parseInt(args[2])
	switch {
	case !ok:
		c.notInteger()
		return
	case count < 0 || count > int64(len(args)-3):
		c.refuse("ERR Number of keys can't be greater than number of args")
		return
	}
	keys := args[3 : 3+count]
	if known, ok := scripts[name]; ok && len(keys) > 0 {
		known(c, keys, args[3+count:])
		return
	}
	c.refuse(unsupported(append([][]byte{args[0]}, keys...), scriptRefusal))
}

// script answers SCRIPT LOAD and EXISTS of the scripts that are known by exactly this text.
func (c *conn) script(args [][]byte) {
	switch {
	case is(args[1], "load") && len(args) == 3 && scripts[nameOf(args[2])] != nil:
		c.out = appendBulk(c.out, nameOf(args[2]))
	case is(args[1], "exists"):
		c.out = appendArray(c.out, len(args)-2)
		for _, name := range args[2:] {
			there := int64(0)
			if scripts[strings.ToLower(string(name))] != nil {
				there = 1
			}
			c.out = appendInt(c.out, there)
		}
	default:
		c.refuse(unsupported(args[:1], scriptRefusal))
	}
}

// initIDGenerator answers how a generator of Redisson begins, with the first id and the length of its ranges: 0, since the
// counter exists. Its ranges are as long as the namespace says.
func (c *conn) initIDGenerator(keys, args [][]byte) {
	if len(args) != 2 {
		c.syntaxError()
		return
	}
	first, ok := parseInt(args[0])
	if !ok {
		c.notInteger()
		return
	}
	if c.existsAbove([][]byte{[]byte("tryInit"), keys[0]}, first-1) {
		c.out = appendInt(c.out, 0)
	}
}

// idsForGenerator answers a range for a generator of Redisson: its first id and how many it has. From a namespace without
// ranges it is one id: without an answer, the generator would ask again for ever.
func (c *conn) idsForGenerator(keys, _ [][]byte) {
	name := c.namespace(keys[0])
	ns, err := c.server.front.Find(c.caller, issuing.Ask{Namespace: name, Fits: issuing.Numeric})
	if err != nil {
		c.failedFor(keys[0], err)
		return
	}
	first, count, err := c.rangeOf(ns, name)
	if err != nil {
		c.failedFor(keys[0], err)
		return
	}
	c.out = appendArray(c.out, 2)
	c.out = appendInt(c.out, first)
	c.out = appendInt(c.out, count)
}

// rangeOf takes consecutive ids of a namespace, only one if it has no ranges of them.
func (c *conn) rangeOf(ns *issuing.Namespace, name string) (first, count int64, err error) {
	if ns.Lacks(settings.Row) == "" {
		taken, err := c.server.front.Range(c.ctx, c.caller, name)
		return int64(taken.First), taken.Count, err
	}
	if err := c.server.front.IssueEach(c.ctx, c.caller, name, 1, &c.batch); err != nil {
		return 0, 0, err
	}
	return int64(c.batch.IDs[0]), 1, nil
}

// incrByScript answers a script that does no more than INCRBY.
func (c *conn) incrByScript(keys, args [][]byte) {
	if len(args) != 1 {
		c.syntaxError()
		return
	}
	c.incrBy([][]byte{[]byte("incrby"), keys[0], args[0]})
}
