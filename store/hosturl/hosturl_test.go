package hosturl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/store/hosturl"
)

func TestAURLIsParsed(t *testing.T) {
	u := hosturl.Parse("redis://us%40er:p%2Fw:x@a,b:7,[::1]:8,[fe80::1]/3/x%20y?name=v%26w&yes=true&n=5", "6379", "redis", "rediss")
	if u.User != "us@er" || u.Password != "p/w:x" || u.Path != "3/x y" || u.Scheme != "redis" {
		t.Errorf("%+v", u)
	}
	if want := []string{"a:6379", "b:7", "[::1]:8", "[fe80::1]:6379"}; !slices.Equal(u.Hosts, want) {
		t.Errorf("hosts %q, want %q", u.Hosts, want)
	}
	if n, ok := u.Int("n", 0, 5); u.Setting("name") != "v&w" || !u.Bool("yes") || n != 5 || !ok {
		t.Error("settings")
	}
	if n, ok := u.Int("absent", 1, 2); u.Setting("none") != "" || u.Bool("no") || n != 0 || ok || u.TLS(false, "x") != nil {
		t.Error("settings that are not there")
	}
	if err := u.Err(); err != nil {
		t.Error(err)
	}
}

func TestErrReportsAllMistakesAtOnceAndNoPassword(t *testing.T) {
	u := hosturl.Parse("x://geheim@:1,a:0,::1/%zz?a=1&b=&c=1&c=2&n=9&f=x&tls_ca=q&left=over", "1", "x")
	u.Setting("a")
	u.Setting("b")
	u.Setting("c")
	u.Int("n", 0, 5)
	u.Bool("f")
	u.TLS(false, "xs://")
	err := u.Err()
	for _, word := range []string{"USER:PASSWORD", "HOST or HOST:PORT", "1 to 65535", "brackets", "hexadecimal", "setting b needs",
		"setting c needs", "n=9 is not a number from 0 to 5", "f=x is neither", "are for xs://", "no setting left: those are a, b, c, f, n, tls_ca"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not say %q", err, word)
		}
	}
	if strings.Contains(err.Error(), "geheim") {
		t.Error(err)
	}
	if err := hosturl.Parse("x://:ge?heim@h", "1", "x").Err(); err == nil || strings.Contains(err.Error(), "heim") {
		t.Error(err)
	}
}

func TestAUserWithoutAPasswordIsToldWhereItGoes(t *testing.T) {
	const want = "the user before @ has no password: write USER:PASSWORD@, or USER:@ without one; a password alone is :PASSWORD@"
	if err := hosturl.Parse("x://geheim@h", "1", "x").Err(); err == nil || err.Error() != want {
		t.Error(err)
	}
	if err := hosturl.Parse("x://user:@h", "1", "x").Err(); err != nil {
		t.Error(err)
	}
}

func TestAnotherSchemeIsTheOnlyMistakeReported(t *testing.T) {
	for text, want := range map[string]string{
		"localhost:7000":         `"localhost:7000": a URL begins with redis:// or rediss://, as in redis://localhost:7000`,
		"[::1]:7000":             `"[::1]:7000": a URL begins with redis:// or rediss://, as in redis://[::1]:7000`,
		"":                       `"": a URL begins with redis:// or rediss://, as in redis://127.0.0.1:6379`,
		"http://h/x?key=y":       `"http://h/x?…": a URL begins with redis:// or rediss://, as in redis://127.0.0.1:6379`,
		"user:geheim@host:1?x=y": `"user:…@host:1?…": a URL begins with redis:// or rediss://, as in redis://127.0.0.1:6379`,
	} {
		u := hosturl.Parse(text, "6379", "redis", "rediss")
		u.Fail(errors.New("it names no database"))
		if err := u.Err(); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzParseRepeatsNoPassword(f *testing.F) {
	f.Add("geheim")
	f.Add("ge@heim")
	f.Add("ge/he?im#%zz")
	f.Fuzz(func(t *testing.T, secret string) {
		if len(secret) < 4 || strings.Contains("USER:PASSWORD or :PASSWORD, with the characters @ : / ? # % escaped as in %40", secret) {
			return // it may stand in any message
		}
		u := hosturl.Parse("redis://user:"+strings.NewReplacer("/", "%2F", "?", "%3F", "@", "%40", "%", "%25", ":", "%3A").Replace(secret)+"@host", "1", "redis")
		if err := u.Err(); err != nil || u.Password != secret {
			t.Errorf("%q was read as %q, %v", secret, u.Password, err)
		}
		raw := hosturl.Parse("redis://user:"+secret+"@host:1", "1", "redis")
		if err := raw.Err(); err != nil && strings.Contains(err.Error(), secret) && !strings.Contains(secret, "?") && !strings.Contains(secret, "/") {
			t.Errorf("%v repeats %q", err, secret)
		}
	})
}
