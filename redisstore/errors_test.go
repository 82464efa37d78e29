package redisstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// Replies of servers, by version. If a script is refused before its first write, the outcome is not
// unknown.
func TestRepliesOfAllVersionsAreClassified(t *testing.T) {
	for text, want := range map[string]struct {
		kind error
		hint string
	}{
		// 6.2.5
		"ERR Error running script (call to f_aed24d4b): @user_script:31: @user_script: 31: -OOM command not allowed when used memory > 'maxmemory'.":           {store.ErrRefused, "its memory is full: raise maxmemory"},
		"ERR Error running script (call to f_aed24d4b): @user_script:15: WRONGTYPE Operation against a key holding the wrong kind of value":                    {store.ErrRefused, "the key holds something else: name another with ?key=NAME"},
		"ERR Error running script (call to f_aed24d4b): @user_script:32: @user_script: 32: The user executing the script can't run this command or subcommand": {store.ErrRefused, permissions},
		"ERR Error running script (call to f_aed24d4b): @user_script:31: @user_script: 31: Unknown Redis command called from Lua script":                       {store.ErrRefused, unknown},
		"ERR Error running script (call to f_aed24d4b): @user_script:31: Script killed by user with SCRIPT KILL...":                                            {store.ErrUnavailable, ""},
		// 7.0.15
		"OOM command not allowed when used memory > 'maxmemory'. script: aed24d4b, on @user_script:31.":                {store.ErrRefused, "its memory is full: raise maxmemory"},
		"ERR The user executing the script can't run this command or subcommand script: aed24d4b, on @user_script:31.": {store.ErrRefused, permissions},
		"ERR Unknown Redis command called from script script: aed24d4b, on @user_script:31.":                           {store.ErrRefused, unknown},
		"ERR Error running script": {store.ErrUnavailable, ""},
	} {
		hint, kind := classify(reply(text))
		if hint != want.hint || !errors.Is(kind, want.kind) {
			t.Errorf("%s: %v, %q", text, kind, hint)
		}
	}
}

func TestAnErrorOfASilentServerNamesItAndNotThePassword(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, "redis://:geheim@"+silent.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "server "+silent.Addr().String()) || strings.Contains(err.Error(), "geheim") {
		t.Error(err)
	}
}
