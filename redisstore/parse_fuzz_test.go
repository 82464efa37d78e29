package redisstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/dial"
)

// FuzzMember reads arbitrary members of the sorted set.
func FuzzMember(f *testing.F) {
	f.Add("firn/p/pool" + endOfKey + "00000000000000ff\n{}")
	f.Add("firn/p/pool" + endOfKey + "zz000000000000ff\n{}")
	f.Add("plain")
	f.Add(endOfKey)
	f.Fuzz(func(t *testing.T, member string) {
		e, err := parse(member)
		if err != nil {
			if !errors.Is(err, store.ErrRefused) {
				t.Fatalf("%v does not match ErrRefused", err)
			}
			return
		}
		if again := e.Key + endOfKey + backend.Encode(e.Revision, e.Value); !strings.EqualFold(again, member) {
			t.Fatalf("%q was read as %+v, which is written %q", member, e, again)
		}
	})
}

// FuzzURL checks that errors do not repeat the password, and that accepted URLs have a host.
func FuzzURL(f *testing.F) {
	for _, text := range []string{
		"redis://:secret@127.0.0.1:6379/0", "rediss://u:secret@h,h2:6379/3?sentinel=main", "redis://h/99999999999999999999",
		"redis://h:0", "redis://", "redis://:secret@h/%zz?x=%zz", "redis://h?cluster=maybe", "http://h", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		options, _, err := parseURL(text, new(dial.Dialer))
		if err == nil && len(options.Addrs) == 0 {
			t.Fatalf("%q was accepted, with no host", text)
		}
	})
}
