package storeurl_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store"
)

func TestErrorsNeverContainAPassword(t *testing.T) {
	for _, test := range []struct{ url, want string }{
		{"redis://user:s3cret@host:6379/0", "redis://…@host:6379/0"},
		{"redis://:s3cret@host:6379", "redis://…@host:6379"},
		{"redis://:s3/cret@host:6379", "redis://…@host:6379"},
		{"redis://:s3#cret@host:6379", "redis://…@host:6379"},
		{"redis://:s3?cret@host:6379", "redis://…@host:6379"},
		{"redis://:s3@cret@host:6379", "redis://…@host:6379"},
		{"redis://:s3%zzcret@host:6379", "redis://…@host:6379"},
		{"redis://:s3 cret@host", "redis://…@host"},
		{"redis://:s3\ncret@host", "redis://…@host"},
		{"redis:s3cret@host", "redis:…@host"},
		{"s3cret@host", "…@host"},
		{"s3cret@host:6379", "…@host:6379"},
		{"postgres://u@h/db?password=s3cret", "postgres://…@h/db?…"},
		{"postgres://u@h/db?a=b@c&password=s3cret", "postgres://…@c&…"},
		{"postgres://h/db?s3cret", "postgres://h/db?…"},
		{"postgres:host=h password=s3cret", "postgres:host=…"},
		{"mysql://u:s3cret@tcp(h:3306)/db?tls=true", "mysql://…@tcp(h:3306)/db?…"},
		{"redis://user:s3cret", "redis://…"},
		{"redis://:s3cret", "redis://…"},
		{"password=s3cret host=h:1", "password=…"},
		{"etcd://a:2379,b:2379", "etcd://a:2379,b:2379"},
		{"redis://host:6379/0", "redis://host:6379/0"},
		{"redis:host", "redis:host"},
		{"memory:", "memory:"},
		{"", ""},
		{":", ":"},
		{"sqlite:/a@b/c?d=e.db", "sqlite:/a@b/c?d=e.db"}, // a path, which contains no password
	} {
		if got := storeurl.Redact(test.url); got != test.want {
			t.Errorf("%q: %q, want %q", test.url, got, test.want)
		}
		if strings.HasPrefix(test.url, "sqlite:") || test.url == "memory:" {
			continue
		}
		_, err := storeurl.Open(context.Background(), test.url)
		if err == nil || strings.Contains(err.Error(), "cret") || test.url != "" && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: opened with %v", test.url, err)
		}
	}
}

func FuzzRedactKeepsNothingBeforeTheLastAt(f *testing.F) {
	for _, seed := range []string{"", "s3cret", ":12/34", "u:a?b=c&d", "//x:y", "a b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		for _, url := range []string{"redis://:" + secret + "@host:1/0", "redis:" + secret + "@host:1/0"} {
			got := storeurl.Redact(url)
			if got != "redis://…@host:1/0" && got != "redis:…@host:1/0" {
				t.Errorf("%q: %q", url, got)
			}
		}
	})
}

func TestAVariableInAURLIsRefused(t *testing.T) {
	for _, text := range []string{"redis://:${PASSWORD}@h:6379/0", "${STORE}", "${HOST}:6379", "file:${HOME}/firn", "sqlite:/x/${NAME}.db"} {
		for _, open := range []func(context.Context, string) (store.Store, error){storeurl.Open, storeurl.Create} {
			_, err := open(context.Background(), text)
			if !errors.Is(err, storeurl.ErrURL) || !strings.Contains(err.Error(), ": ${NAME} is not replaced by a variable: write the value,") || !strings.HasSuffix(err.Error(), "write %24 for $") || strings.Contains(err.Error(), "PASSWORD") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// Their clients would not send the user, and go on as another.
func TestAUserWithoutAPasswordIsRefusedByRedisAndEtcd(t *testing.T) {
	for _, text := range []string{"redis://app:@h:6379", "etcd://app:@h:2379"} {
		if _, err := storeurl.Open(context.Background(), text); !errors.Is(err, storeurl.ErrURL) || !strings.Contains(err.Error(), "a user without a password cannot log in") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestADSNOfTheDriverIsToldItsURL(t *testing.T) {
	for dsn, want := range map[string]string{
		"user:s3cret@tcp(127.0.0.1:3306)/db":               "did you mean mysql://USER:PASSWORD@127.0.0.1:3306/db, with settings as in docs/stores.md?",
		"user:s3/c:ret@x@tcp(db)/shop?tls=true&timeout=3s": "did you mean mysql://USER:PASSWORD@db:3306/shop, with settings as in docs/stores.md?",
		"mysql://user:s3cret@tcp([::1]:3307)/a%20b":        "did you mean mysql://USER:PASSWORD@[::1]:3307/a%20b, with settings as in docs/stores.md?",
	} {
		if _, err := storeurl.Open(context.Background(), dsn); !errors.Is(err, storeurl.ErrURL) || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "ret") {
			t.Errorf("%s: %v, want %s", dsn, err, want)
		}
	}
	for _, other := range []string{"user:s3cret@tcp(127.0.0.1:3306)", "user:s3cret@udp(h:1)/db", "tcp(h:1)/db"} {
		if _, err := storeurl.Open(context.Background(), other); err == nil || strings.Contains(err.Error(), "mean") || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: %v", other, err)
		}
	}
}

func TestMemoryTakesNothingAfterTheColon(t *testing.T) {
	s, err := storeurl.Open(context.Background(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := storeurl.Open(context.Background(), "memory:x"); err == nil {
		t.Error("memory:x was opened")
	}
}
