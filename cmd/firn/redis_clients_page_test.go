package main

import (
	"bytes"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
)

// A faultyProxy relays connections to a server of the Redis protocol. The first three requests for a batch meet faults:
// the connection of the first is never answered again, that of the second is closed instead, and the third is answered
// with TRYAGAIN. The server takes the ids of the first two, which are then skipped.
type faultyProxy struct {
	server   string
	requests atomic.Int32 // for batches
	reused   atomic.Bool  // a request followed on the connection that does not answer
}

// startFaultyProxy returns the proxy and its port.
func startFaultyProxy(t *testing.T, server string) (p *faultyProxy, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p = &faultyProxy{server: server}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.relay(client)
		}
	}()
	return p, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func (p *faultyProxy) relay(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	var discard atomic.Bool // the answers
	go func() {
		defer client.Close()
		answer := make([]byte, 1<<16)
		for {
			n, err := server.Read(answer)
			if err != nil {
				return
			}
			if discard.Load() {
				continue
			}
			if _, err := client.Write(answer[:n]); err != nil {
				return
			}
		}
	}()
	request := make([]byte, 1<<16)
	for {
		n, err := client.Read(request)
		if err != nil {
			return
		}
		if bytes.Contains(request[:n], []byte("FIRN.NEXT")) {
			switch p.requests.Add(1) {
			case 1:
				discard.Store(true)
				server.Write(request[:n])
				if n, _ := io.Copy(io.Discard, client); n > 0 { // until the client closes, however
					p.reused.Store(true)
				}
				return
			case 2:
				discard.Store(true)
				server.Write(request[:n])
				return
			case 3:
				io.WriteString(client, "-TRYAGAIN not_ready: a fault of the test\r\n")
				continue
			}
		}
		if _, err := server.Write(request[:n]); err != nil {
			return
		}
	}
}

const redisClientsPage, redisClientsTitle = "docs/clients-redis.md", "# Redis clients: pools, time-outs, batches"

// startClients returns a reader for the page's programs, and the address of a server for them.
func startClients(t *testing.T) (r *reader, server string) {
	t.Helper()
	r = newReader(t)
	r.clean = append(r.clean, "PYTHONPATH="+installed(t, "clients-python", "redis-py"))
	installed(t, "clients-java", "jedis")
	installed(t, "clients/node_modules", "ioredis")
	needClient(t, exec.Command("php", "-r", "new Redis;").Run() == nil, "php-redis")
	needClient(t, exec.Command("ruby", "-r", "redis", "-r", "connection_pool", "-e", "").Run() == nil, "ruby-redis")
	r.serve("firn serve")
	return r, r.replace.Replace("127.0.0.1:7071")
}

// TestTheClientsOfTheRedisPageGetTheirIDsThroughFaults runs each program of the page, and counts the ids.
func TestTheClientsOfTheRedisPageGetTheirIDsThroughFaults(t *testing.T) {
	r, server := startClients(t)
	had := map[string]bool{}
	var languages []string
	for _, s := range snippets(t, redisClientsPage, redisClientsTitle) {
		languages = append(languages, s.language)
		t.Run(s.language, func(t *testing.T) {
			proxy, port := startFaultyProxy(t, server)
			within := *r
			within.t, within.replace = t, addresses("", port, "")
			newIDs(t, s, within.types(s), 1000, had)
			if batches := proxy.requests.Load(); batches < 13 { // ten, and three that faults met
				t.Errorf("the program asked for %d batches", batches)
			}
			// JavaScript's client sends requests before it has the answers, and assigns these in order.
			if proxy.reused.Load() && s.language != "js" {
				t.Error("the program asked again on a connection after a time-out: the late answer would be taken for that to the next call")
			}
		})
	}
	if want := []string{"python", "java", "js", "go", "php", "ruby"}; !slices.Equal(languages, want) {
		t.Errorf("programs in %v, want %v", languages, want)
	}
}

// TestForkedChildrenDoNotIssueTheirParentsIDs adds a fork to the programs whose servers fork.
func TestForkedChildrenDoNotIssueTheirParentsIDs(t *testing.T) {
	r, _ := startClients(t)
	forks := map[string]string{
		"python": "\norders.next()\nif not os.fork():\n    print(orders.next(), flush=True)\n    os._exit(0)\nos.wait()\nprint(orders.next())\n",
		"ruby":   "\norders.next\nfork { puts orders.next }\nProcess.wait\nputs orders.next\n",
	}
	for _, s := range snippets(t, redisClientsPage, redisClientsTitle) {
		if forks[s.language] == "" {
			continue
		}
		t.Run(s.language, func(t *testing.T) {
			within := *r
			within.t = t
			s.text += forks[s.language]
			newIDs(t, s, within.types(s), 1002, map[string]bool{})
		})
	}
}
