package network_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/firn-id/firn/bench/internal/network"
)

// answering is a server that repeats every line with its name before it.
func answering(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, name, lines.Text())
				}
			}()
		}
	}()
	return l.Addr().String()
}

// A talker is a client on a connection.
type talker struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func talk(t *testing.T, address string) *talker {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &talker{t, c, bufio.NewReader(c)}
}

func (k *talker) says(line, want string) {
	k.t.Helper()
	k.send(line)
	k.hears(want)
}

func (k *talker) send(line string) {
	k.t.Helper()
	if _, err := fmt.Fprintln(k.conn, line); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talker) hears(want string) {
	k.t.Helper()
	if err := k.conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		k.t.Fatal(err)
	}
	if got, err := k.in.ReadString('\n'); err != nil || got != want+"\n" {
		k.t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func (k *talker) hearsNothing() {
	k.t.Helper()
	if err := k.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.in.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
		k.t.Errorf("it hears something: %v", err)
	}
}

func closing(t *testing.T, n *network.Network) {
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestABlockedConnectionIsSilentAndContinuesAfterwards(t *testing.T) {
	n := network.New()
	closing(t, n)
	n.Process(os.Getpid(), "me")
	n.Node("a", answering(t, "a"))
	n.Node("b", answering(t, "b"))
	var to [2]*talker
	for i, node := range []string{"a", "b"} {
		address, err := n.Relay(network.To(node, 0))
		if err != nil {
			t.Fatal(err)
		}
		to[i] = talk(t, address)
		to[i].says("1", node+" 1")
	}
	n.Block(network.Sides("a"))
	to[0].send("2")
	to[0].hearsNothing()
	to[1].says("2", "b 2")
	n.Block(network.Sides("a", "me"))
	to[0].hears("a 2")
	to[1].send("3")
	to[1].hearsNothing()
	n.Block(func(client, node string, answer bool) bool { return client == "me" && node == "b" && answer })
	to[1].hearsNothing()
	n.Block(nil)
	to[1].hears("b 3")
}

func TestARouteCanDifferByClientAndResetEndsEarlierConnections(t *testing.T) {
	n := network.New()
	closing(t, n)
	n.Process(os.Getpid(), "me")
	n.Node("a", answering(t, "a"))
	n.Node("b", answering(t, "b"))
	node := "a"
	address, err := n.Relay(func(client string) (string, int) {
		if client != "me" {
			t.Errorf("the client is %q", client)
		}
		return node, 0
	})
	if err != nil {
		t.Fatal(err)
	}
	first := talk(t, address)
	first.says("1", "a 1")
	node = "b"
	first.says("2", "a 2")
	n.Reset(func(client, node string) bool { return client == "me" && node == "a" })
	if _, err := first.in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after a reset: %v", err)
	}
	talk(t, address).says("3", "b 3")
}

func TestADeadConnectionStaysSilentAndANewOneWorks(t *testing.T) {
	n := network.New()
	closing(t, n)
	n.Process(os.Getpid(), "me")
	n.Node("a", answering(t, "a"))
	address, err := n.Relay(network.To("a", 0))
	if err != nil {
		t.Fatal(err)
	}
	first := talk(t, address)
	first.says("1", "a 1")
	n.Block(network.Sides("me"))
	first.send("2")
	n.Hang(func(client, node string) bool { return client == "me" && node == "a" })
	n.Block(nil)
	first.send("3")
	first.hearsNothing()
	talk(t, address).says("4", "a 4")
	first.hearsNothing()
}

func TestANodeIsRecognizedAsAClientByTheAddressItListensOn(t *testing.T) {
	n := network.New()
	closing(t, n)
	l, err := net.Listen("tcp", "127.0.0.1:0") // this process is node c
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	n.Node("c", l.Addr().String())
	n.Node("a", answering(t, "c"))
	clients := make(chan string, 1)
	address, err := n.Relay(func(client string) (string, int) {
		clients <- client
		return "a", 0
	})
	if err != nil {
		t.Fatal(err)
	}
	talk(t, address).says("1", "c 1")
	if got := <-clients; got != "c" && got != "a" { // this process listens for both
		t.Errorf("the client is %q", got)
	}
}

func TestANodeThatIsGoneEndsTheConnection(t *testing.T) {
	n := network.New()
	closing(t, n)
	n.Node("a", "127.0.0.1:1")
	address, err := n.Relay(network.To("a", 0))
	if err != nil {
		t.Fatal(err)
	}
	k := talk(t, address)
	if _, err := k.in.ReadByte(); err != io.EOF {
		t.Errorf("%v", err)
	}
}
