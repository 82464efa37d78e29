package cosid_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/cosid"
	"github.com/firn-id/firn/store/memstore"
)

// The requests in testdata are byte for byte those that the client of CosId 3.2.1 sent to
// CosId's own proxy server, through the two HTTP clients that Spring may use. The same Java
// program was also run against Firn, with the same results. The tests replay its bytes
// because CosId's libraries are not available everywhere.

// answers are the answers of CosId's own server: for errors their code, for machine numbers
// without the stamp.
var answers = []string{
	"200 0", "200 0", "200 1", // x, x after losing its memory, y, which is stable
	"400 M-01",     // no number is left for z
	"200 ", "200 ", // x and y are guarded
	"200 ",          // x returns its number
	"200 0", "200 ", // z gets it, and is guarded
	"200 ",         // y is reverted but keeps its number, as it is stable
	"400 M-01",     // no number is left for x
	"200 0",        // another namespace
	"200 1",        // y again
	"200 ", "200 ", // a counter is created, twice
	"200 100", "200 107", "200 207",
	"200 ", "200 1010", // a counter with an offset
	"200 ", "200 10", // a counter for one month
	"400 500", // a step of 0
}

func TestRequestsOfTheJavaClientGetTheOriginalsAnswers(t *testing.T) {
	for _, file := range []string{"java-http-client.txt", "reactor-netty.txt"} {
		t.Run(file, func(t *testing.T) {
			cfg := cosid.Config{Store: memstore.New(nil)}
			s := httptest.NewServer(serve(t, cfg))
			defer s.Close()
			replay(t, s.Listener.Addr().String(), file, answers)
		})
	}
}

// replay sends the requests of a file on one connection, unchanged.
func replay(t *testing.T, addr, file string, want []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	requests := strings.SplitAfter(string(text), "\n\n")
	if n := len(requests) - 1; n != len(want) {
		t.Fatalf("%d requests for %d answers", n, len(want))
	}
	for i, want := range want {
		if _, err := io.WriteString(conn, strings.ReplaceAll(requests[i], "\n", "\r\n")); err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(requests[i], "\n")
		method, _, _ := strings.Cut(line, " ")
		r, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		body, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := short(r.StatusCode, string(body)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func short(status int, body string) string {
	var machine int
	var stamp int64
	if n, _ := fmt.Sscanf(body, `{"machineId":%d,"lastTimeStamp":%d}`, &machine, &stamp); n == 2 {
		return fmt.Sprint(status, " ", machine)
	}
	if _, rest, ok := strings.Cut(body, `"code":"`); ok {
		code, _, _ := strings.Cut(rest, `"`)
		return fmt.Sprint(status, " ", code)
	}
	return fmt.Sprint(status, " ", body)
}
