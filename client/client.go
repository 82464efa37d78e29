// Package client gets ids from Firn servers, and issues them from memory.
//
//	c, err := client.New(client.Config{
//		Servers: []string{"http://10.0.0.1:7070", "http://10.0.0.2:7070"},
//		Token:   token,
//	})
//	...
//	defer c.Close()
//	orders, err := c.IDs("orders")
//	...
//	id, err := orders.Next(ctx)
//
// [Namespace.Next] takes an id from a buffer: tens of nanoseconds, no allocation, no request. The client
// fills the buffer in the background, with one request at a time, sized by the demand to last for
// [Buffer.Target]. If all servers are down for longer, callers wait; after [Config.Wait] they fail.
//
// All servers use one store and are equal. The client puts them in a random order and asks the first.
// It leaves a server that fails, and returns to it when it answers again.
//
// # What is promised
//
// No id is issued twice, whatever fails. The ids of a broken or late answer are lost: they become gaps.
//
// Where ids grow (kinds snowflake and segment, not veiled), the ids of [Namespace.Next] grow within one
// client, even when it changes servers. Two clients have two buffers, so one may issue lower ids than
// the other did before. The kinds sequence and number promise that every id is greater than all issued
// before it, anywhere. A buffer would break that: Next refuses them with [ErrKind]. Use
// [Namespace.Fetch], which asks a server at each call.
//
// # When not to use it
//
// A Go program that can reach the store needs no server: it makes ids itself, with packages lease and
// segment. A program that wants few ids, each made when called for, can use Fetch, or plain HTTP.
package client

// The files in layers, each calling only later ones: client, namespace, source (fills a buffer), pass (asks
// one server after another), servers (which to ask), wire (one request), ids, config, errors.

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
)

// A Client gets ids from several equal servers. Make one with [New]: the zero value is not usable. Do not copy it. Its methods may be
// called concurrently.
type Client struct {
	cfg     *Config
	servers *servers

	mu      sync.Mutex // guards all below; never held while waiting
	numbers map[string]*Namespace[firn.ID]
	texts   map[string]*Namespace[string]
	all     []interface { // of both maps
		state() NamespaceState
		close()
	}
}

// New returns a client. It sends no request yet. The error names every invalid setting.
func New(cfg Config) (*Client, error) {
	if err := cfg.complete(); err != nil {
		return nil, config.Of[Config]("client", err)
	}
	return &Client{
		cfg: &cfg, servers: newServers(&cfg),
		numbers: map[string]*Namespace[firn.ID]{}, texts: map[string]*Namespace[string]{},
	}, nil
}

// IDs returns the namespace of that name, whose ids are numbers: kinds snowflake, segment and sequence,
// without a prefix. It sends no request yet. Until Close, the same name gives the same Namespace. The
// error matches [firn.ErrSyntax] if the name is invalid, [firn.ErrRange] after 10,000 namespaces, of
// both types, and [firn.ErrClosed] after Close.
func (c *Client) IDs(name string) (*Namespace[firn.ID], error) {
	return open(c, c.numbers, name, numbers)
}

// Texts is like IDs, for ids of any kind as text: serial, number, uuid, objectid, prefixed, and numbers.
func (c *Client) Texts(name string) (*Namespace[string], error) {
	return open(c, c.texts, name, texts)
}

func open[T firn.ID | string](c *Client, all map[string]*Namespace[T], name string, f form[T]) (*Namespace[T], error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.servers.life.Err() != nil {
		return nil, fmt.Errorf("client: %w", firn.ErrClosed)
	}
	if n := all[name]; n != nil {
		return n, nil
	}
	if have := len(c.all); have >= maxNamespaces {
		return nil, firn.NewRangeError("number of namespaces", int64(have)+1, 1, maxNamespaces, "of one client, all of which it keeps")
	}
	buffer, ok := c.cfg.Buffers[name]
	if !ok {
		buffer = c.cfg.Buffer
	}
	n := &Namespace[T]{name: name, cfg: c.cfg, source: &source[T]{name: name, form: f, buffer: buffer, servers: c.servers, batch: maxBatch}}
	all[name], c.all = n, append(c.all, n)
	return n, nil
}

// A State is a snapshot of a client.
type State struct {
	Servers    []ServerState    // in the order in which they are asked
	Namespaces []NamespaceState // by name; of one name, that of IDs before that of Texts
}

// State returns a snapshot, for metrics.
func (c *Client) State() State {
	s := State{Servers: c.servers.state()}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.all {
		s.Namespaces = append(s.Namespaces, n.state())
	}
	slices.SortFunc(s.Namespaces, func(a, b NamespaceState) int {
		byName := strings.Compare(a.Namespace, b.Namespace)
		switch {
		case byName != 0 || a.Texts == b.Texts:
			return byName
		case b.Texts:
			return -1
		}
		return 1
	})
	return s
}

// Close ends the client. Calls that wait fail with [firn.ErrClosed]; buffered ids are lost and become
// gaps. A call that begins after Close returns no id. Close returns once all calls and background work
// have ended. Its error is always nil. It may be called twice, and concurrently.
func (c *Client) Close() error {
	c.servers.end() // first, so that no server is blamed for a request cut off here
	var group sync.WaitGroup
	c.mu.Lock()
	for _, n := range c.all {
		group.Go(n.close)
	}
	c.mu.Unlock()
	group.Wait()
	c.servers.wait()
	return nil
}
