package settings_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/store"
)

func TestExamineFindsWhatIsDoubtful(t *testing.T) {
	const (
		secret   = `sha256: "9ba7e8c4e004487a8ee04d50850cd9c8b54623cf7dee8c10fd9c4543f8fea87e"`
		token    = "tokens: [{name: shop, " + secret + ", namespaces: [orders]}]\n"
		orders   = "namespaces: {orders: {}, items: {}}\n"
		tls      = "tls: {cert: c.pem, key: k.pem}\n"
		local    = "callers on this machine may do everything"
		readable = "clients send their tokens to 0.0.0.0:7070 unencrypted"
	)
	for _, test := range []struct {
		text, listeners string
		want            []string
	}{
		{orders + token, "127.0.0.1:7070 [::1]:7071 localhost:7072", nil},
		{orders + token, "0.0.0.0:7070", []string{readable}},
		{orders + token, ":7070 10.0.0.1:7071", []string{"to :7070 unencrypted", "to 10.0.0.1:7071 unencrypted"}},
		{orders + token, "off 0.0.0.0:7070", []string{readable}},
		{orders + token + tls, "0.0.0.0:7070", nil},
		{orders + "anonymous: [\"*\"]", "0.0.0.0:7070", nil},
		{orders, "0.0.0.0:7070", []string{local, "requests from other machines to 0.0.0.0:7070 are refused"}},
		{orders, "127.0.0.1:7070", []string{local}},
		{orders + "tokens: []", "", []string{local}},

		{orders + "tokens: [{name: shop, " + secret + ", namespaces: [order, items, \"user-*\"]}]", "",
			[]string{"token shop names order, user-*, but the configuration has no such namespace"}},
		{orders + "tokens: [{name: shop, " + secret + ", namespaces: [order]}]", "",
			[]string{"token shop names order, but the configuration has no such namespace: token shop allows no ids"}},
		{orders + "tokens: [{name: ops, " + secret + ", admin: true}]", "", nil},
		{orders + "anonymous: [order]", "", []string{"anonymous names order, but the configuration has no such namespace: anonymous allows no ids"}},
		{orders + "cosid: true\nanonymous: [machines]", "", nil},
		{"store: file:/srv/firn\n" + token, "", nil}, // namespaces are made on first use
	} {
		cfg, err := settings.Parse("firn.yaml", []byte(test.text))
		if err != nil {
			t.Fatal(err)
		}
		got := cfg.Examine(strings.Fields(test.listeners)...)
		matches := slices.EqualFunc(got, test.want, func(f store.Finding, want string) bool {
			return f.Verdict == store.Doubtful == (want != local) && f.Advice != "" && strings.Contains(f.Says, want)
		})
		if !matches {
			t.Errorf("%s on %s: %v, want %q", test.text, test.listeners, got, test.want)
		}
	}
}
