package main

import (
	"strings"
	"testing"
)

func TestHealthAsksTheServerHere(t *testing.T) {
	folder := configured(t, "namespaces: {orders: {}}", sqliteStore(t))
	s := startServed(t, folder, "off")
	run := session(t)
	address := s.address
	for _, args := range [][]string{{}, {"--live"}, {"--namespace", "orders"}} {
		if status, output := run(nil, append([]string{"health", "--http", address}, args...)...); status != 0 || output != "ok\n" {
			t.Errorf("health %v: %d, %s", args, status, output)
		}
	}
	if status, output := run([]string{"FIRN_HTTP=" + address}, "health"); status != 0 {
		t.Errorf("health with the address in the environment: %d, %s", status, output)
	}
	if status, output := run(nil, "health", "--http", address, "--namespace", "bills"); status != 1 || !strings.Contains(output, "404") {
		t.Errorf("health of a missing namespace: %d, %s", status, output)
	}
	s.kill()
	if status, output := run(nil, "health", "--http", address); status != 1 || !strings.Contains(output, "not ready: ") || !strings.Contains(output, "refused: is firn serve running there? Name another address with --http or --config") {
		t.Errorf("health without a server: %d, %s", status, output)
	}
	for args, want := range map[string]string{"--timeout=0s": "1ms to 1m0s are allowed", "--live --namespace=x": "leave one out", "--http=x": "write HOST:PORT"} {
		if status, output := run(nil, append([]string{"health"}, strings.Fields(args)...)...); status != 2 || !strings.Contains(output, want) {
			t.Errorf("health %s: %d, %s", args, status, output)
		}
	}
}
