package cli

import (
	"fmt"
	"testing"
)

func TestAMisspeltVariableIsRefusedUnlessItMayBelongToAnother(t *testing.T) {
	for _, c := range []struct{ command, variable, meant string }{
		{"serve", "FIRN_STOR=redis://h", "FIRN_STORE"},
		{"serve", "FIRN_STORES=redis://h", "FIRN_STORE"},
		{"serve", "FIRN_STROE=redis://h", "FIRN_STORE"},
		{"next", "FIRN_DATACENTRE=1", "FIRN_DATACENTER"},
		{"doctor", "FIRN_CONFG=firn.yaml", "FIRN_CONFIG"},

		{"serve", "FIRN_STORE=redis://h", ""},
		{"next", "FIRN_HTTP=:7070", ""}, // of another command
		{"next", "FIRN_M=5", ""},
		{"serve", "FIRN_VEIL_KEYS=1:abc", ""},
		{"bench", "FIRN_TOKEN=abc", ""},
		{"serve", "STOR=x", ""},

		// Kubernetes sets these for a Service named firn, firn-store or firn-pool.
		{"serve", "FIRN_PORT=tcp://10.0.0.1:7070", ""},
		{"serve", "FIRN_SERVICE_HOST=10.0.0.1", ""},
		{"serve", "FIRN_SERVICE_PORT=7070", ""},
		{"serve", "FIRN_SERVICE_PORT_HTTP=7070", ""},
		{"serve", "FIRN_PORT_5335_TCP=tcp://10.0.0.1:5335", ""},
		{"serve", "FIRN_PORT_5335_TCP_PROTO=tcp", ""},
		{"serve", "FIRN_PORT_5335_TCP_PORT=5335", ""},
		{"serve", "FIRN_PORT_5335_TCP_ADDR=10.0.0.1", ""},
		{"serve", "FIRN_STORE_PORT=tcp://10.0.0.1:7070", ""},
		{"serve", "FIRN_POOL_SERVICE_HOST=10.0.0.1", ""},
	} {
		cmd, _, err := newRoot([]string{c.command}).Find([]string{c.command})
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if c.meant != "" {
			want = ": did you mean " + c.meant + "?"
		}
		switch err := misspelt(cmd.Flags(), []string{c.variable}); {
		case err == nil && want == "":
		case err == nil || want == "":
			t.Errorf("%s with %s: %v", c.command, c.variable, err)
		case fmt.Sprint(err)[len(err.Error())-len(want):] != want:
			t.Errorf("%s with %s: %v\nlacks %s", c.command, c.variable, err, want)
		}
	}
}
