package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/firn-id/firn/store/dial"
)

func TestRepliesAreCheckedBeforeTheClientReadsThem(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("$1\r\nx\r\n", dial.MaxPieces-1)
	for reply, refused := range map[string]string{
		"+OK\r\n":                               "",
		"-ERR no\r\n":                           "",
		":1\r\n":                                "",
		"$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n":        "",
		"*2\r\n*1\r\n$2\r\n\r\n\r\n:1\r\n+\r\n": "",
		"%1\r\n+a\r\n*1\r\n_\r\n~1\r\n#t\r\n>1\r\n,1.5\r\n=5\r\ntxt:a\r\n!1\r\nx\r\n(1\r\n":     "",
		fmt.Sprintf("$%d\r\n%s\r\n+OK\r\n", dial.MaxPiece, strings.Repeat("\n", dial.MaxPiece)): "",
		fmt.Sprintf("*%d\r\n%s", dial.MaxPieces-1, many):                                        "",

		"$9223372036854775807\r\n":                 "announces more than the 1048576",
		"$99999999999999999999\r\n":                "announces more than the 1048576",
		"$-2\r\n":                                  "announces",
		"$x\r\n":                                   "announces",
		fmt.Sprintf("$%d\r\n", dial.MaxPiece+1):    "announces more than the 1048576",
		"=500000000\r\n":                           "announces more than the 1048576",
		"*9223372036854775807\r\n":                 "announces more than the 131072",
		"%131072\r\n":                              "more than 131072 pieces",
		"%4611686018427387905\r\n":                 "announces more than the 131072",
		"*1\r\n*100000\r\n*100000\r\n":             "more than 131072 pieces",
		strings.Repeat("*1\r\n", 33):               "more than 32 arrays",
		strings.Repeat(":1\r\n", dial.MaxPieces+1): "more than 131072 pieces",
		"+" + strings.Repeat("x", 64<<10):          "a line of 65537 bytes",
		strings.Repeat("|1\r\n+a\r\n+b\r\n", 2):    `type '|'`,
		"HTTP/1.1 400 Bad Request\r\n":             `type 'H'`,
		"\r\n":                                     "a line",
		"+OK\n":                                    "a line",
	} {
		for _, size := range []int{1, 7, len(reply)} {
			r := check()
			r.Sent(nil)
			var err error
			for rest := reply; err == nil && rest != ""; rest = rest[min(size, len(rest)):] {
				err = r.Received([]byte(rest[:min(size, len(rest))]))
			}
			if (refused != "") != errors.Is(err, dial.ErrMalformed) || err != nil && !strings.Contains(err.Error(), refused) {
				t.Errorf("%.40q in reads of %d: %v, want %q", reply, size, err, refused)
			}
		}
	}
}

// A cluster whose slots were moved one by one has thousands of ranges, with all their nodes.
func TestTheSlotsOfAClusterMayTakeMoreThanAMegabyte(t *testing.T) {
	const ranges, nodes, host = 4000, 3, "firn-0001-001.firn.abcdef.euc1.cache.example.com"
	var answer strings.Builder
	fmt.Fprintf(&answer, "*%d\r\n", ranges)
	for i := range ranges {
		fmt.Fprintf(&answer, "*%d\r\n:%d\r\n:%d\r\n", 2+nodes, 2*i, 2*i)
		for range nodes {
			fmt.Fprintf(&answer, "*4\r\n$%d\r\n%s\r\n:6379\r\n$40\r\n%040d\r\n*0\r\n", len(host), host, i)
		}
	}
	for question, want := range map[string]bool{"*2\r\n$7\r\ncluster\r\n$5\r\nslots\r\n": true, "*2\r\n$7\r\ncluster\r\n$5\r\nnodes\r\n": false} {
		g := &dial.Guard{Check: &resp{}}
		g.Sent([]byte(question))
		if err := g.Received([]byte(answer.String())); (err == nil) != want {
			t.Errorf("%d bytes in answer to %q: %v", answer.Len(), question, err)
		}
	}
}
