package respapi

import (
	"fmt"
	"path"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// command answers COMMAND [COUNT|LIST|INFO [name…]|DOCS [name…]].
func (c *conn) command(args [][]byte) {
	switch {
	case len(args) == 1:
		c.describe(c.server.table.sorted)
	case is(args[1], "count") && len(args) == 2:
		c.out = appendInt(c.out, int64(len(c.server.table.sorted)))
	case is(args[1], "list") && len(args) == 2:
		c.strings(c.server.table.sorted...)
	case is(args[1], "info"):
		c.describe(c.named(args[2:]))
	case is(args[1], "docs"):
		c.document(c.named(args[2:]))
	default:
		c.unknownSubcommand(args)
	}
}

// named returns the names in args, or all names if there are no args.
func (c *conn) named(args [][]byte) []string {
	if len(args) == 0 {
		return c.server.table.sorted
	}
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = string(a)
	}
	return names
}

// describe answers COMMAND's description of each name, null for an unknown one.
func (c *conn) describe(names []string) {
	c.out = appendArray(c.out, len(names))
	for _, name := range names {
		k, ok := c.server.table.find([]byte(name))
		if !ok {
			c.out = appendNull(c.out, c.version)
			continue
		}
		key := int64(0)
		if k.keys {
			key = 1
		}
		c.out = appendArray(c.out, 10)
		c.out = appendBulk(c.out, k.name)
		c.out = appendInt(c.out, int64(k.arity))
		c.out = appendSet(c.out, c.version, len(k.flags))
		for _, f := range k.flags {
			c.out = appendSimple(c.out, f)
		}
		for range 3 { // first key, last key, step
			c.out = appendInt(c.out, key)
		}
		c.out = appendSet(c.out, c.version, 0) // categories of access
		for range 3 {                          // tips, key specifications, subcommands
			c.out = appendArray(c.out, 0)
		}
	}
}

// document answers COMMAND DOCS; unknown names are left out.
func (c *conn) document(names []string) {
	var known []*command
	for _, name := range names {
		if k, ok := c.server.table.find([]byte(name)); ok {
			known = append(known, k)
		}
	}
	c.out = appendMap(c.out, c.version, len(known))
	for _, k := range known {
		c.out = appendBulk(c.out, k.name)
		c.pairs("summary", k.summary, "since", "1.0.0", "group", k.group)
	}
}

// config answers CONFIG GET with the settings that redis-benchmark and libraries read. There
// is no CONFIG SET.
func (c *conn) config(args [][]byte) {
	if !is(args[1], "get") {
		c.unknownSubcommand(args)
		return
	}
	if len(args) < 3 {
		c.wrongArguments(args)
		return
	}
	settings := []string{
		"save", "", "appendonly", "no", "databases", "1", "maxmemory", "0", "timeout", "0",
		"maxclients", strconv.Itoa(c.server.front.Limits().MaxConnections()),
		"proto-max-bulk-len", strconv.Itoa(callerLimits.bulk),
	}
	var found []string
	for i := 0; i < len(settings); i += 2 {
		for _, pattern := range args[2:] {
			// A malformed pattern matches nothing.
			if ok, err := path.Match(strings.ToLower(string(pattern)), settings[i]); ok && err == nil {
				found = append(found, settings[i], settings[i+1])
				break
			}
		}
	}
	c.pairs(found...)
}

// memory returns how many bytes the process has from the operating system.
func memory() uint64 {
	read := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(read)
	return read[0].Value.Uint64() - read[1].Value.Uint64()
}

// info answers INFO in Redis's format, with the fields that clients look for.
func (c *conn) info(args [][]byte) {
	uptime := int64(time.Since(c.server.started).Seconds())
	ready := "yes"
	if err := c.server.cfg.Service.Ready(); err != nil {
		ready = "no"
	}
	sections := []struct{ name, text string }{
		{"Server", fmt.Sprintf("redis_version:%s\r\nredis_mode:standalone\r\nserver_name:firn\r\nfirn_ready:%s\r\nos:%s\r\narch_bits:%d\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\n",
			compatible, ready, runtime.GOOS, strconv.IntSize, uptime, uptime/86400)},
		{"Clients", fmt.Sprintf("connected_clients:%d\r\nmaxclients:%d\r\nblocked_clients:0\r\n", c.server.connections(), c.server.front.Limits().MaxConnections())},
		{"Memory", fmt.Sprintf("used_memory:%d\r\nmaxmemory:0\r\n", memory())},
		{"Persistence", "loading:0\r\nrdb_bgsave_in_progress:0\r\naof_rewrite_in_progress:0\r\n"},
		{"Stats", fmt.Sprintf("total_connections_received:%d\r\ntotal_commands_processed:%d\r\n", c.server.lastID.Load(), c.server.commands.Load())},
		{"Replication", "role:master\r\nconnected_slaves:0\r\n"},
		{"Cluster", "cluster_enabled:0\r\n"},
		{"Keyspace", ""},
	}
	var b strings.Builder
	for _, s := range sections {
		wanted := len(args) == 1
		for _, a := range args[1:] {
			wanted = wanted || is(a, s.name) || is(a, "all") || is(a, "default") || is(a, "everything")
		}
		if !wanted {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("# " + s.name + "\r\n" + s.text)
	}
	c.out = appendBulk(c.out, b.String())
}
