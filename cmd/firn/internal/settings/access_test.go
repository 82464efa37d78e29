package settings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

const hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestMistakesInAccessAndLimitsAreNamed(t *testing.T) {
	token := func(rest string) string { return "tokens:\n  - {name: shop, " + rest + "}\n" }
	for text, want := range map[string][]string{
		token("sha256: " + hash):                                    {"line 2", "tokens[0]", "needs namespaces"},
		token("sha256: abc, namespaces: [a]"):                       {"tokens[0].sha256", "64 hex digits", "firn token"},
		token("sha256: " + hash + "00, namespaces: [a]"):            {"tokens[0].sha256", "64 hex digits"},
		token("namespaces: [a]"):                                    {"tokens[0]", "firn token makes one"},
		token("sha256: " + hash + ", namespaces: [a b]"):            {"tokens[0].namespaces[0]", "order-*"},
		token("sha256: " + hash + ", namespaces: [a], rate: fast"):  {"tokens[0].rate", "50000/s"},
		token("sha256: " + hash + ", leases: [a b]"):                {"tokens[0].leases[0]", "order-*"},
		token("sha256: " + hash + ", leases: [a], max_leases: 0"):   {"tokens[0].max_leases", "65536"},
		token("sha256: " + hash + ", namespaces: [a], admni: true"): {"admni", "certificate"},
		token("sha256: " + hash + ", admin: perhaps"):               {`line 2: tokens[0].admin: "perhaps" is not a valid admin: true and false are allowed`},
		token("sha256: " + hash + ", admin: yes"):                   {`line 2: tokens[0].admin: "yes" is not a valid admin: true and false are allowed`},
		"tokens: geheim":                         {"line 1: tokens: write a list"},
		"tokens: [geheim]":                       {"line 1: tokens[0]: write its settings: {name, sha256, "},
		"limits: {batch: lots}":                  {`line 1: limits.batch: "lots" is not a valid batch: 1 to 10000000 are allowed`},
		"cosid: 1":                               {`line 1: cosid: "1" is not a valid cosid: true and false are allowed`},
		token("certificate: x, namespaces: [a]"): {"tokens[0].certificate", "tls.client_ca"},
		token("sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855, admin: true"):               {"secret was empty"},
		"tokens: [{sha256: " + hash + ", admin: true}]":                                                              {"tokens[0].name", "token name"},
		token("sha256: "+hash+", admin: true") + "  - {name: shop, sha256: 1" + hash[1:] + ", admin: true}":          {"line 3", "another token of the name"},
		token("sha256: "+hash+", admin: true") + "  - {name: b, sha256: " + strings.ToUpper(hash) + ", admin: true}": {"line 3", "secret of token shop too"},
		"anonymous: ['a/b']":                                       {"line 1", "anonymous[0]"},
		"anonymous: yes please":                                    {"line 1: anonymous", `"yes please"`, "write a list"},
		"limits: {rate: {orders: 5}}":                              {"limits.rate.orders", "50000/s"},
		"limits: {rate: {'o/x': 5/s}}":                             {"limits.rate.o/x", "pattern of namespaces"},
		"limits: {rate: {b: 5/s}}\nnamespaces: {a: {}}":            {"limits.rate.b", "the configuration has no namespace of this name"},
		"limits: {body: 10}":                                       {"limits.body", "1024"},
		"limits: {connections: -1}":                                {"limits.connections", "-1"},
		"limits: {bodies: 1}":                                      {"bodies", "connections"},
		"tls: {cert: a}":                                           {"tls", "key: FILE"},
		"tls: {cert: a, key: b, client_auth: require}":             {"tls.client_auth", "client_ca"},
		"tls: {cert: a, key: b, client_ca: c, client_auth: maybe}": {"tls.client_auth", "optional"},
		"audit: {path: x}":                                         {"path", "file"},
	} {
		said := refused(t, text, want)
		if strings.Contains(said, "geheim") || strings.Contains(said, "abc") && strings.Contains(text, "sha256: abc") {
			t.Errorf("what may be a secret is repeated: %s", said)
		}
	}
}

func TestAMistakeDoesNotShowTheSecretsBesideIt(t *testing.T) {
	for _, text := range []string{
		"store: redis://:geheim@127.0.0.1:6379/0\nstroe: x\n", "store: mysql://u:gehe@im@h/db\nlisten: [1]\n", "strore: redis://:geheim@h/0",
		"tokens:\n  - {name: a, sha256: geheim, admni: true}\n", "tokens:\n  - {name: a, 'sha256' : \"geheim\", admni: true}\n", "tokens:\n  - name: a\n    sha256: geheim\n    admni: true\n",
	} {
		_, err := settings.Parse("firn.yaml", []byte(text))
		if err == nil || strings.Contains(err.Error(), "gehe") || strings.Contains(err.Error(), "im@") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheNearestRateHolds(t *testing.T) {
	l := settings.Limits{Rate: map[string]string{"*": "1/s", "order-*": "2/s", "order-x*": "3/m", "order-x1": "4/h"}}
	for name, want := range map[string]access.Rate{
		"a": {Count: 1, Per: time.Second}, "order-1": {Count: 2, Per: time.Second}, "order-x2": {Count: 3, Per: time.Minute}, "order-x1": {Count: 4, Per: time.Hour},
	} {
		if got := l.RateOf(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !(settings.Limits{}).RateOf("a").IsZero() {
		t.Error("a limit out of nothing")
	}
}
