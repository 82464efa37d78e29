package server_test

import (
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// A configuration may wait for a worker for minutes. Meanwhile a newer one must be able to
// remove a token, or to correct the file.
func TestANewerConfigurationReplacesOneThatWaitsForAWorker(t *testing.T) {
	tokens := func(names ...string) string {
		text := "tokens:\n"
		for _, n := range names {
			text += "  - {name: " + n + ", sha256: " + access.Hash(n) + ", namespaces: ['*']}\n"
		}
		return text
	}
	v := serve(t, "namespaces: {orders: {}}\n"+tokens("a", "b"))
	v.turn()
	const waits = "namespaces: {orders: {}, later: {pool: later}}\n"
	client := fresh(t)
	for name, look := range map[string]func(){"changed": v.turn, "SIGHUP": v.hangup} {
		write(t, v.file, waits+tokens("a", "b"))
		look()
		v.log.has(t, `msg="preparing a configuration; the current one stays in force meanwhile" cause=`+name)
		if status, body := get(t, client, "http://"+v.addr+"/v1/ids/orders", "b"); status != 200 {
			t.Errorf("%d %s", status, body)
		}
		write(t, v.file, "namespaces: {orders: {}}\n"+tokens("a"))
		look()
		if status, _ := get(t, client, "http://"+v.addr+"/v1/ids/orders", "b"); status != 401 {
			t.Errorf("%s: a token that was taken out is in force: %d", name, status)
		}
		write(t, v.file, "namespaces: {orders: {}}\n"+tokens("a", "b"))
		look()
		if status, _ := get(t, client, "http://"+v.addr+"/v1/ids/orders", "b"); status != 200 {
			t.Error(status)
		}
	}
	write(t, v.file, waits+tokens("a"))
	v.turn() // the server shuts down while the configuration waits
}
