package hostile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// HOSTILE_REQUESTS sets how many requests of each protocol are made.
func TestFuzzedRequestsFailNothing(t *testing.T) {
	count, long := 1000, false
	if text := os.Getenv("HOSTILE_REQUESTS"); text != "" {
		count, _ = strconv.Atoi(text)
		long = true
	}
	v := start(t, declared+"cosid: true\n", "")
	goroutines, descriptors := v.metric("go_goroutines"), v.descriptors()
	for _, protocol := range slices.Sorted(maps.Keys(seeds)) {
		seed := rand.Uint64()
		began := time.Now()
		seen := v.fuzz(protocol, seed, count)
		fmt.Printf("%-9s seed %d, %v: %v\n", protocol, seed, time.Since(began).Round(time.Second), seen)
		// A protocol that is no longer reached, or only with what it refuses, is not tested.
		if served := seen["ok"]; served < count/20 || served > count*19/20 {
			t.Errorf("%s: %d of %d requests were served", protocol, served, count)
		}
	}
	if log := v.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "internal error") {
		t.Error(log)
	}
	began := time.Now()
	for v.metric("go_goroutines") > goroutines+10 || v.descriptors() > descriptors+10 || long && time.Since(began) < released {
		if time.Since(began) > released+5*time.Second {
			t.Errorf("%v goroutines are left of %v, %d descriptors of %d", v.metric("go_goroutines"), goroutines, v.descriptors(), descriptors)
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	left, most := v.memory()
	fmt.Printf("%v goroutines, %d descriptors, %d MB of memory (at most %d) after %v\n", v.metric("go_goroutines"), v.descriptors(), left, most, time.Since(began).Round(time.Second))
	if long && (most >= memory || left > memory/2) { // the short run is made under the race detector too, which takes memory
		t.Errorf("%d MB of memory, at most %d", left, most)
	}
}

// descriptors returns the number of open files of the server.
func (v *target) descriptors() int {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", v.process.Process.Pid))
	if err != nil {
		v.t.Fatal(err)
	}
	return len(all)
}

// fuzz sends mutated requests and counts the answers by what they say.
func (v *target) fuzz(protocol string, seed uint64, count int) map[string]int {
	var mu sync.Mutex
	var group sync.WaitGroup
	seen := map[string]int{}
	const callers = 8
	for i := range callers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			from := seeds[protocol]
			for range count / callers {
				request := from[r.IntN(len(from))].mutated(r, protocol)
				began := time.Now()
				answer := v.once(fmt.Sprintf("127.0.1.%d", 1+i), protocol, request) // one address has too few ports
				if wrong(protocol, request, answer) {
					v.t.Errorf("%s: %q: %.300q", protocol, request, answer)
				}
				if took := time.Since(began); took > slowestAnswer {
					v.t.Errorf("%s: %q took %v: %.300q", protocol, request, took, answer)
				}
				mu.Lock()
				seen[outcome(answer)]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return seen
}

var (
	grpcStatus  = regexp.MustCompile(`grpc-status: ?(\d+)`)
	jsonCode    = regexp.MustCompile(`"code": ?"([a-z_]+)"`)
	statusLine  = regexp.MustCompile(`^HTTP/[0-9.]+ (\d+)`)
	redisStatus = regexp.MustCompile(`(?m)^-([A-Z]+)`)
	// asThey is what the servers of Leaf and CosId answer with status 500, unknown keys and unreadable parameters, and what
	// the libraries of gRPC and Connect call an internal error: what breaks the protocol. Ours are in the log, too.
	asThey = regexp.MustCompile(`LeafServerException|"code":"500","msg":"(parameter|invalid query)|` +
		`(message"?: ?"?)(protocol error: |unexpected EOF|malformed |Received a HEADERS frame|corrupt response|unmarshal end stream|cardinality violation|no host or |grpc: )`)
)

// outcome returns "ok", a code or a status.
func outcome(answer string) string {
	for _, of := range []struct {
		prefix string
		find   *regexp.Regexp
	}{{"grpc ", grpcStatus}, {"", jsonCode}, {"", statusLine}, {"-", redisStatus}} {
		if found := of.find.FindStringSubmatch(answer); found != nil {
			return strings.NewReplacer("grpc 0", "ok").Replace(strings.Replace(of.prefix+found[1], "200", "ok", 1))
		}
	}
	if answer != "" && strings.ContainsRune("+:$*%_,#", rune(answer[0])) {
		return "ok"
	}
	return strings.TrimSpace(answer[:min(len(answer), 20)])
}

// wrong reports whether an answer means a fault of the server.
func wrong(protocol, request, answer string) bool {
	if protocol == "leaf" && strings.HasPrefix(request, "HEAD") { // their error has no body then
		return false
	}
	is := outcome(answer)
	return !asThey.MatchString(answer) && (is == "500" || is == "internal" || is == "unknown" || is == "grpc 13" || is == "grpc 2" || strings.HasPrefix(answer, "HTTP/1.1 500") || strings.Contains(answer, "-ERR internal"))
}

// slowestAnswer is less than the server waits for the rest of a request that has ended.
const slowestAnswer = 9 * time.Second

// once sends bytes over a new connection and returns what comes back first.
func (v *target) once(address, protocol, request string) string {
	to := v.http
	switch protocol {
	case "resp":
		to = v.resp
	case "grpc":
		to = v.grpc
	}
	c, err := v.connect(address, to)
	if err != nil {
		v.t.Errorf("connect: %v", err)
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, request)
	end := func() {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	if isFramed(protocol) { // the end of the connection would end its requests
		defer time.AfterFunc(50*time.Millisecond, end).Stop()
		return framedAnswer(c.read)
	}
	end()
	if protocol == "resp" {
		b, _ := io.ReadAll(io.LimitReader(c.read, 1<<20))
		return string(b)
	}
	answers := bufio.NewReader(c.read)
	answer, err := http.ReadResponse(answers, nil)
	for err == nil && answer.StatusCode == http.StatusContinue {
		answer, err = http.ReadResponse(answers, nil)
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return "closed"
	case err != nil:
		return err.Error()
	}
	b, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
	_ = c.Close() // or closing the body reads the rest, which may have no end
	_ = answer.Body.Close()
	return answer.Proto + " " + answer.Status + "\n" + string(b)
}

// framedAnswer reads the answer of a stream of HTTP/2: its header fields as lines.
func framedAnswer(from io.Reader) string {
	f := http2.NewFramer(io.Discard, from)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var fields strings.Builder
	for range 50 { // of a stream of ids
		frame, err := f.ReadFrame()
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			for _, field := range frame.Fields {
				if field.Name == ":status" {
					fmt.Fprintf(&fields, "HTTP/2 %s\n", field.Value)
				} else {
					fmt.Fprintf(&fields, "%s: %s\n", field.Name, field.Value)
				}
			}
			if frame.StreamEnded() {
				return fields.String()
			}
		case *http2.GoAwayFrame:
			return "GOAWAY " + frame.ErrCode.String()
		case *http2.RSTStreamFrame:
			return "RST " + frame.ErrCode.String()
		}
		if err != nil {
			return fields.String() + "closed"
		}
	}
	return fields.String()
}
