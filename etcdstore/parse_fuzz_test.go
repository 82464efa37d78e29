package etcdstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/dial"
)

// FuzzValue reads arbitrary values under the prefix.
func FuzzValue(f *testing.F) {
	f.Add("p/firn/p/pool", "00000000000000ff\n{}")
	f.Add("p/x", "zz000000000000ff\n{}")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, key, value string) {
		e, err := (&Store{prefix: "p/"}).parse([]byte(key), []byte(value))
		if err != nil {
			if !errors.Is(err, store.ErrRefused) {
				t.Fatalf("%v does not match ErrRefused", err)
			}
			return
		}
		if again := backend.Encode(e.Revision, e.Value); !strings.EqualFold(again, value) {
			t.Fatalf("%q was read as %+v, which is written %q", value, e, again)
		}
	})
}

// FuzzURL checks that accepted URLs have a host.
func FuzzURL(f *testing.F) {
	for _, text := range []string{
		"etcd://127.0.0.1:2379/firn", "etcd://u:secret@a:1,b:2/x?tls=true", "etcd://a?tls=maybe", "etcd://", "etcd://a:b/%zz", "redis://a", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if cfg, _, err := parseURL(text, new(dial.Dialer)); err == nil && len(cfg.Endpoints) == 0 {
			t.Fatalf("%q was accepted, with no host", text)
		}
	})
}
