//go:build unix

package respapi_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/respapi"
)

func TestRepliesOfAPipelineAreInTheOrderOfItsCommands(t *testing.T) {
	_, _, address := serve(t, kinds)
	c := dial(t, address)
	var b strings.Builder
	var want []string
	const rounds = 3000
	for i := range rounds {
		for range i % 7 { // runs of equal commands, of different lengths
			fmt.Fprintf(&b, incr, 5, "items")
			want = append(want, "items")
		}
		for range i % 3 {
			fmt.Fprintf(&b, incr, 6, "orders")
			want = append(want, "orders")
		}
		fmt.Fprintf(&b, "*2\r\n$4\r\nECHO\r\n$1\r\n%d\r\n", i%10)
		want = append(want, fmt.Sprint(i%10))
	}
	go func() { _, _ = io.WriteString(c, b.String()) }() // a failure shows in the replies
	var item, order int64
	for i, what := range want {
		switch what {
		case "items":
			if item++; c.number() != item {
				t.Fatalf("reply %d of items is not %d", i, item)
			}
		case "orders":
			id := c.number()
			if id <= order {
				t.Fatalf("reply %d of orders is %d after %d", i, id, order)
			}
			order = id
		default:
			if got := c.reply(); got != what {
				t.Fatalf("reply %d is %s, want %s", i, got, what)
			}
		}
	}
}

func TestManyClientsGetEachIDOnce(t *testing.T) {
	_, _, address := serve(t, kinds)
	var mu sync.Mutex
	seen := map[int64]bool{}
	var group sync.WaitGroup
	for range 20 {
		c := dial(t, address)
		group.Go(func() {
			for round := range 50 {
				c.send(strings.Repeat(fmt.Sprintf(incr, 5, "items"), 16))
				last := int64(0)
				mu.Lock()
				for range 16 {
					id := c.number()
					if seen[id] || id <= last {
						t.Errorf("round %d: %d after %d", round, id, last)
					}
					seen[id], last = true, id
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(seen) != 16_000 {
		t.Errorf("%d ids", len(seen))
	}
}

func TestALongAnswerIsWhole(t *testing.T) {
	_, _, address := serve(t, kinds)
	c := dial(t, address)
	c.send("FIRN.NEXT items COUNT 100000\r\nPING\r\nFIRN.NEXT uid COUNT 20000\r\n")
	if got := c.line(); got != "*100000" {
		t.Fatal(got)
	}
	for want := int64(1); want <= 100_000; want++ {
		if got := c.number(); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	}
	if got := c.line(); got != "+PONG" {
		t.Error(got)
	}
	if got := c.line(); got != "*20000" {
		t.Fatal(got)
	}
	for range 20_000 {
		if got := c.reply(); len(got) != 36 {
			t.Fatal(got)
		}
	}
}

func TestAClientThatDoesNotReadIsDroppedAndOthersGoOn(t *testing.T) {
	_, _, address := serve(t, kinds, func(c *respapi.Config) { c.WriteTimeout = 200 * time.Millisecond })
	slow, other := dial(t, address), dial(t, address)
	// Far more answers than the buffers of a connection hold.
	go func() {
		_, _ = io.WriteString(slow, strings.Repeat("FIRN.NEXT items COUNT 100000\r\n", 1000)) // fails when it is dropped
	}()
	for range 100 {
		if got := other.ask("PING"); got != "+PONG" {
			t.Fatal(got)
		}
	}
	for !strings.Contains(other.ask("INFO clients"), "connected_clients:1\r\n") { // until it is dropped
		time.Sleep(10 * time.Millisecond)
	}
}

func TestAClientThatDoesNotFinishItsCommandIsDisconnected(t *testing.T) {
	_, _, address := serve(t, kinds, func(c *respapi.Config) { c.ReadTimeout = 100 * time.Millisecond })
	c, idle := dial(t, address), dial(t, address)
	start := time.Now()
	c.send("PING\r\n*2\r\n$4\r\nIN")
	if got := c.line(); got != "+PONG" {
		t.Fatal(got)
	}
	go func() {
		for { // a byte now and then does not help
			if _, err := c.Write([]byte("C")); err != nil {
				return
			}
			time.Sleep(30 * time.Millisecond)
		}
	}()
	_, _ = io.Copy(io.Discard, c.lines) // the end of the connection, perhaps after a protocol error
	if d := time.Since(start); d < 50*time.Millisecond {
		t.Errorf("cut off after %v", d)
	}
	if got := idle.ask("PING"); got != "+PONG" {
		t.Errorf("an idle client: %s", got)
	}
}

func TestAConnectionThatEndsTogetherWithItsLastCommandIsClosed(t *testing.T) {
	_, _, address := serve(t, kinds)
	for _, warm := range []int{0, 3, 500} { // a busy connection is checked less often
		c := dial(t, address)
		for range warm {
			c.ask("PING")
		}
		c.send("PING\r\nPING\r\n")
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := c.line(); got != "+PONG" {
				t.Error(got)
			}
		}
		c.ended()
	}
}

// TestTenThousandIdleConnections also checks the memory of each.
func TestTenThousandIdleConnections(t *testing.T) {
	const most = 10_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	count := min(most, int(min(files.Cur, 1<<20)-200)/2) // both ends are in this process
	_, _, address := serve(t, kinds)
	first := dial(t, address)
	first.ask("INCR items")
	before := memory()
	conns := make([]net.Conn, count-1)
	for i := range conns {
		// One address does not have enough ports.
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i%8))}}
		c, err := d.Dial("tcp", address)
		if err != nil {
			t.Fatalf("connection %d of %d: %v", i, count, err)
		}
		conns[i] = c
		if _, err := c.Write([]byte("INCR items\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	var reply [64]byte
	for _, c := range conns {
		if n, err := c.Read(reply[:]); err != nil || reply[0] != ':' {
			t.Fatalf("%q, %v", reply[:n], err)
		}
	}
	each := (memory() - before) / int64(count)
	t.Logf("%d connections, %d bytes each of Go's memory, with their clients", count, each)
	if each > 16<<10 {
		t.Errorf("an idle connection costs %d bytes", each)
	}
	if err := first.SetDeadline(time.Now().Add(time.Minute)); err != nil { // to open so many may take long on a busy machine
		t.Fatal(err)
	}
	if got := first.ask("INCR items"); got != fmt.Sprintf(":%d", count+1) {
		t.Errorf("beside them: %s", got)
	}
	for _, c := range conns {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for !strings.Contains(first.ask("INFO clients"), "connected_clients:1\r\n") {
		time.Sleep(10 * time.Millisecond)
	}
}

func memory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestConnectionsLeaveNothingBehindHoweverTheyEnd(t *testing.T) {
	_, _, address := serve(t, kinds, func(c *respapi.Config) { c.ReadTimeout = 50 * time.Millisecond })
	control := dial(t, address)
	control.ask("INCR items") // the first command starts all that starts lazily
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for i := range 300 {
		c := dial(t, address)
		switch i % 6 {
		case 0: // at once
		case 1:
			c.ask("INCR orders")
		case 2:
			c.send("*3\r\n$4\r\nIN") // never complete
		case 3:
			c.send("*1\r\nX")
		case 4:
			c.ask("QUIT")
		case 5:
			c.send("FIRN.NEXT items COUNT 50000\r\n")
			if err := c.SetLinger(0); err != nil { // reset while answers are on their way
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > goroutines || openFiles(t) > files {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines were %d, %d files were %d", runtime.NumGoroutine(), goroutines, openFiles(t), files)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := control.ask("PING"); got != "+PONG" {
		t.Error(got)
	}
}
