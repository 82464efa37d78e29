package hostile

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/cli"
	"github.com/firn-id/firn/store/storetest/servers"
)

// The test binary runs as three processes: the server, whose memory can be measured, the attacker, who must not slow
// the other callers down by itself, and the other callers.
const (
	asFirn     = "FIRN_TEST_HOSTILE_SERVER"
	asAttacker = "FIRN_TEST_HOSTILE_ATTACKER" // the name of the attack
)

func TestMain(m *testing.M) {
	if os.Getenv(asFirn) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if name := os.Getenv(asAttacker); name != "" {
		attackAs(name)
		return
	}
	os.Exit(m.Run())
}

// attackAs makes one attack until the input ends.
func attackAs(name string) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
		time.Sleep(3 * time.Second)
		os.Exit(0) // its connections end with it
	}()
	for _, a := range attacks {
		if a.name == name {
			a.run(ctx, &target{http: os.Args[1], resp: os.Args[2], grpc: os.Args[3]})
		}
	}
	<-ctx.Done()
}

// attack starts a process that makes an attack until the returned function is called. The server is on another machine
// as a rule, so the attacker has a low priority.
func (v *target) attack(name string) (stop func()) {
	v.t.Helper()
	p := exec.Command("nice", "-n", "19", os.Args[0], v.http, v.resp, v.grpc)
	p.Env = append(os.Environ(), asAttacker+"="+name)
	p.Stderr = os.Stderr
	input, err := p.StdinPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		v.t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		_ = input.Close()
		_ = p.Wait()
	})
}

// The addresses are all of this machine, and the server tells them apart.
const (
	hostileAddress = "127.0.0.2"
	otherAddress   = "127.0.0.1"
)

// A target is a server under attack.
type target struct {
	t                *testing.T
	http, resp, grpc string
	process          *exec.Cmd
	log              *lines
}

// lines is what a process writes.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// free returns an address that nothing listens on.
func free(t *testing.T) string { return fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t)) }

// start starts a server with a configuration, and waits until it is ready. Shell runs before it, as ulimit -n 64.
func start(t *testing.T, config, shell string) *target {
	t.Helper()
	v := &target{t: t, http: free(t), resp: free(t), grpc: free(t), log: &lines{}}
	file := filepath.Join(t.TempDir(), "firn.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := os.Args[0]
	if given := os.Getenv("FIRN"); given != "" {
		binary = given
	}
	v.process = exec.Command("sh", "-c", shell+` exec "$0" serve --config "$1" --http "$2" --resp "$3" --grpc "$4"`, binary, file, v.http, v.resp, v.grpc)
	v.process.Env = append(os.Environ(), asFirn+"=1")
	v.process.Stdout, v.process.Stderr = v.log, v.log
	if err := v.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = v.process.Process.Signal(os.Interrupt)
		_ = v.process.Wait()
		if t.Failed() {
			t.Log(v.log)
		}
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if v.probe(otherAddress, "/v1/ids/orders") == nil { // ready is a server that has ids of any kind
			return v
		}
		if time.Now().After(deadline) {
			t.Fatal("the server is not ready:\n", v.log)
		}
	}
}

// from returns a dialer that connects from an address.
func from(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 5 * time.Second}
}

// client returns an HTTP client at an address.
func client(address string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: from(address).DialContext, MaxIdleConnsPerHost: 1000}, Timeout: 10 * time.Second}
}

// overHTTP2 returns a client at an address that speaks HTTP/2 in clear text.
func overHTTP2(address string) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{DialContext: from(address).DialContext, Protocols: protocols}}
}

// probe asks for a path over a new connection, as Kubernetes does.
func (v *target) probe(address, path string) error {
	c := client(address)
	c.Timeout = time.Second // the default of Kubernetes
	defer c.CloseIdleConnections()
	r, err := c.Get("http://" + v.http + path)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, r.Status)
	}
	return nil
}

// memory returns the resident memory of the server in megabytes, now and at most so far.
func (v *target) memory() (now, most int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.process.Process.Pid))
	if err != nil {
		v.t.Fatal(err)
	}
	of := func(key string) int {
		_, rest, _ := strings.Cut(string(text), key+":")
		kb, _ := strconv.Atoi(strings.Fields(rest)[0])
		return kb >> 10
	}
	return of("VmRSS"), of("VmHWM")
}

// metric returns the sum of a metric's series.
func (v *target) metric(name string) (sum float64) {
	c := client(otherAddress)
	defer c.CloseIdleConnections()
	r, err := c.Get("http://" + v.http + "/metrics")
	if err != nil {
		return -1
	}
	defer r.Body.Close()
	for all := bufio.NewScanner(r.Body); all.Scan(); {
		if line := all.Text(); strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ") {
			n, _ := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			sum += n
		}
	}
	return sum
}

// An experience is what another caller sees of the server.
type experience struct {
	mu       sync.Mutex
	took     []time.Duration
	failures map[string]int
}

func (e *experience) add(took time.Duration, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		if e.failures == nil {
			e.failures = map[string]int{}
		}
		e.failures[err.Error()]++
		return
	}
	e.took = append(e.took, took)
}

func (e *experience) quantile(q float64) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.took) == 0 {
		return time.Hour
	}
	slices.Sort(e.took)
	return e.took[int(q*float64(len(e.took)-1))]
}

// others use the server from another address until ctx ends: over HTTP, gRPC and the Redis protocol, each over a
// connection that lasts and over a new one each time.
func (v *target) others(ctx context.Context, as *experience) {
	var group sync.WaitGroup
	every := func(pause time.Duration, do func() error) {
		group.Go(func() {
			ticker := time.NewTicker(pause)
			defer ticker.Stop()
			for {
				began := time.Now()
				err := do()
				if ctx.Err() != nil {
					return
				}
				as.add(time.Since(began), err)
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
				}
			}
		})
	}
	ask := func(c *http.Client) error {
		r, err := c.Post("http://"+v.http+"/v1/ids/orders", "", nil)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err == nil && r.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", r.Status, b)
		}
		return err
	}
	lasting := client(otherAddress)
	defer lasting.CloseIdleConnections()
	every(10*time.Millisecond, func() error { return ask(lasting) })
	every(50*time.Millisecond, func() error {
		c := client(otherAddress)
		defer c.CloseIdleConnections()
		return ask(c)
	})
	unary := func(c *http.Client) error {
		ids := firnv1connect.NewIDServiceClient(c, "http://"+v.grpc, connect.WithGRPC())
		_, err := ids.Generate(ctx, connect.NewRequest(&firnv1.GenerateRequest{Namespace: "orders"}))
		return err
	}
	lastingGRPC := overHTTP2(otherAddress)
	defer lastingGRPC.CloseIdleConnections()
	every(10*time.Millisecond, func() error { return unary(lastingGRPC) })
	every(50*time.Millisecond, func() error {
		c := overHTTP2(otherAddress)
		defer c.CloseIdleConnections()
		return unary(c)
	})
	var redis *conn
	every(10*time.Millisecond, func() error {
		if redis == nil {
			var err error
			if redis, err = v.connect(otherAddress, v.resp); err != nil {
				return err
			}
		}
		err := redis.incr()
		if err != nil {
			_ = redis.Close()
			redis = nil
		}
		return err
	})
	every(50*time.Millisecond, func() error {
		c, err := v.connect(otherAddress, v.resp)
		if err != nil {
			return err
		}
		defer c.Close()
		return c.incr()
	})
	group.Wait()
	if redis != nil {
		_ = redis.Close()
	}
}

// A conn is a connection with a reader.
type conn struct {
	net.Conn
	read *bufio.Reader
}

func (v *target) connect(address, to string) (*conn, error) {
	c, err := from(address).Dial("tcp", to)
	if err != nil {
		return nil, err
	}
	_ = c.(*net.TCPConn).SetLinger(0) // thousands would leave no ports
	return &conn{c, bufio.NewReaderSize(c, 512)}, nil
}

// incr takes an id over the Redis protocol.
func (c *conn) incr() error {
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, "INCR orders\r\n"); err != nil {
		return err
	}
	line, err := c.read.ReadString('\n')
	if err == nil && line[0] != ':' {
		err = fmt.Errorf("%q", line)
	}
	return err
}
