package storeurl

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/store"
)

// elsewhere sets what libpq takes from the environment for a URL that does not name it.
func elsewhere(set func(key, value string), port string) {
	set("PGHOST", "elsewhere")
	set("PGDATABASE", "elsewhere")
	set("PGPORT", port)
	set("PGSERVICE", "")
}

// hostsOf returns the hosts that the driver connects to. It has each twice if TLS is only preferred.
func hostsOf(cfg *pgx.ConnConfig) string {
	hosts := []string{cfg.Host}
	for _, f := range cfg.Fallbacks {
		hosts = append(hosts, f.Host)
	}
	return strings.Join(slices.Compact(hosts), ",")
}

func TestAPostgresURLThatNamesItsStoreIsAccepted(t *testing.T) {
	elsewhere(t.Setenv, "")
	for _, test := range []struct{ url, hosts, database string }{
		{"postgres://u:p@h/db", "h", "db"},
		{"postgresql://h:5433/db", "h", "db"},
		{"postgres://u:p@%2Fvar%2Frun%2Fpostgresql/db", "/var/run/postgresql", "db"},
		{"postgresql://u:p@[::1]:5432,[::2]:5433/db", "::1,::2", "db"},
		{"postgres://[a/b?c,d]/db", "a/b?c,d", "db"},
		{"postgres://u:p^{}@h/db", "h", "db"},
		{"postgres://u:p@x%40h/db", "x@h", "db"},
		{"postgres://u:p?x@h/db", "h", "db"},
		{"postgres:///?host=h&dbname=d;x", "h", "d;x"},
		{"postgres://?host=h&database=db", "h", "db"},
		{"postgres://?h%6Fst=h&d%62name=d%62", "h", "db"},
		{"postgres://,/a?host=h1,h2&dbname=db", "h1,h2", "db"},
		{"postgres://h/?dbname=a&database=db", "h", "db"},
		{"postgres://h/db?host=&host=h2", "h2", "db"},
		{"postgres://h1%2Ch2/db%2F", "h1,h2", "db/"},
		{"postgres://h//", "h", "/"},
		{"postgres://h/%20", "h", " "},
		{"postgres://h/a%40b?application_name=c%40d", "h", "a@b"},
		{"postgres://u:p:w@a:1,b:2/db", "a,b", "db"},
	} {
		cfg, err := pgx.ParseConfig(test.url)
		if err != nil {
			t.Fatalf("%s: the driver refuses it: %v", test.url, err)
		}
		if err := errors.Join(oneLogin(test.url), named(test.url, cfg)); err != nil {
			t.Errorf("%s: %v", test.url, err)
		}
		if hosts := hostsOf(cfg); hosts != test.hosts || cfg.Database != test.database {
			t.Errorf("%s: the driver uses %s and %s, want %s and %s", test.url, hosts, cfg.Database, test.hosts, test.database)
		}
	}
}

func TestAPostgresURLThatLeavesItsStoreToTheEnvironmentIsRefused(t *testing.T) {
	elsewhere(t.Setenv, "")
	const write = ": write postgres://USER:PASSWORD@HOST/DATABASE"
	for _, test := range []struct{ url, names string }{
		{"postgres://", "no host and no database"},
		{"postgres://u:geheim@", "no host and no database"},
		{"postgres://u:geheim@/db", "no host"},
		{"postgres://u:geheim@:5432/db", "no host"},
		{"postgres://u:geheim@ /db", "no host"},
		{"postgres://u:geheim@,h2/db", "no host"},
		{"postgres://u:geheim@h1,:5433/db", "no host"},
		{"postgres://u:geheim@h1%2C/db", "no host"},
		{"postgres://u:geheim@h/db?host=", "no host"},
		{"postgres://u:geheim@h/db?h%6Fst=h1,,h2", "no host"},
		{"postgres://u:geheim@h", "no database"},
		{"postgres://u:geheim@h/", "no database"},
		{"postgres://u:geheim@h/ ", "no database"},
		{"postgres://u:geheim@h/db?dbname=", "no database"},
		{"postgres://u:geheim@h/db?database=", "no database"},
	} {
		_, err := Open(t.Context(), test.url)
		expect(t, test.url, err, store.ErrRefused, "it names "+test.names+write)
		if !errors.Is(err, ErrURL) {
			t.Errorf("%s: %v, want ErrURL", test.url, err)
		}
	}
}

// The driver would take what follows the password's first @ or / for a host, look it up, and name it in its error.
func TestAPostgresURLWithAnUnescapedPasswordIsRefusedBeforeAnyLookup(t *testing.T) {
	elsewhere(t.Setenv, "")
	for _, scheme := range []string{"postgres://", "postgresql://"} {
		for _, login := range []string{
			"app:gehe@im/zzz@", "app:gehe/im@", "app:@gehe@im@", "app:12/geheim@", "app:gehe@im?zzz@", "app:gehe@im:12@", "app:gehe@12,zzz@", "app:gehe/zzz?im@",
			"app:gehe@im?sslmode=zzz@", "app:gehe@im#zzz@", "app:gehe@%zzz@", "app@gehe:im@", ":gehe@im@", "gehe@im@", "app:12?gehe/im@zzz@",
		} {
			for _, hosts := range []string{"127.0.0.1:15499/pay2", "a:1,b:2/db", "[::1]/db?sslmode=disable"} {
				url := scheme + login + hosts
				_, err := Open(t.Context(), url)
				expect(t, url, err, store.ErrRefused, "what stands before the only @ is USER:PASSWORD")
				if err != nil && (strings.Contains(err.Error(), "gehe") || strings.Contains(err.Error(), "im@") || strings.Contains(err.Error(), "zzz") || !errors.Is(err, ErrURL)) {
					t.Errorf("%s: %v", url, err)
				}
			}
		}
	}
}

// Whatever the driver accepts, its host is after the last @ of the URL.
func FuzzAPostgresPasswordIsNoHost(f *testing.F) {
	elsewhere(f.Setenv, "")
	for _, seed := range []string{"a@b/c", "a/b", "1/b", "a?b@c", "a#b", "%41@", ":a", "a,b", "[a]/b", "@", "/", "?a=b@c", "1,2:3/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		url := "postgres://app:" + secret + "@h:1,i:2/db"
		if oneLogin(url) != nil {
			return
		}
		cfg, err := pgx.ParseConfig(url)
		if err == nil && (hostsOf(cfg) != "h,i" || cfg.Database != "db" || cfg.User != "app") {
			t.Errorf("%q: the driver uses %s, %s and %s", url, cfg.User, hostsOf(cfg), cfg.Database)
		}
	})
}

func TestTheEnvironmentDoesNotChooseThePortOfAPostgresURL(t *testing.T) {
	for _, test := range []struct {
		url, port string
		refused   bool
	}{
		{"postgres://u:geheim@h/db", "", false},
		{"postgres://u:geheim@h/db", "5432", false},
		{"postgres://u:geheim@h/db", "7777", true},
		{"postgres://u:geheim@h/db?sslmode=disable", "7777", true},
		{"postgres://u:geheim@h:/db", "7777", true},
		{"postgres://u:geheim@[::1]/db", "7777", true},
		{"postgres://u:geheim@/db?host=h1,h2", "5432,7777", true},
		{"postgres://u:geheim@h:5432/db", "7777", false},
		{"postgres://u:geheim@h/db?port=5433", "7777", false},
		{"postgres://u:geheim@h/db?port=", "7777", false}, // 5432, as for the next
		{"postgres://u:geheim@h1,h2/db", "7777", false},
	} {
		elsewhere(t.Setenv, test.port)
		cfg, err := pgx.ParseConfig(test.url)
		if err != nil {
			t.Fatalf("%s: the driver refuses it: %v", test.url, err)
		}
		err = named(test.url, cfg)
		if test.refused {
			expect(t, test.url, err, store.ErrRefused, "PGPORT", "name the port in the URL")
		} else if err != nil || cfg.Port == 7777 {
			t.Errorf("%s with PGPORT=%s: port %d, %v", test.url, test.port, cfg.Port, err)
		}
	}
}

func TestTheEnvironmentDoesNotChooseTheSchemaOfAPostgresURL(t *testing.T) {
	elsewhere(t.Setenv, "")
	t.Setenv("PGOPTIONS", "-c search_path=other")
	for url, refused := range map[string]bool{
		"postgres://u:geheim@h/db":                                     true,
		"postgres://u:geheim@h/db?options=-c%20statement_timeout%3D5s": false,
	} {
		cfg, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		if err = named(url, cfg); refused {
			expect(t, url, err, store.ErrRefused, "PGOPTIONS", "-c search_path=other", "write options in the URL")
		} else if err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestAServiceMayNameThePostgres(t *testing.T) {
	elsewhere(t.Setenv, "")
	file := filepath.Join(t.TempDir(), "services")
	if err := os.WriteFile(file, []byte("[shop]\nhost=h\nport=7777\ndbname=db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGSERVICEFILE", file)
	for _, test := range []struct{ service, url, refused string }{
		{"", "postgres://?service=shop", ""},
		{"", "postgres://?service=shop&host=", "no host"},
		{"", "postgres://,h2?service=shop", "no host"},
		{"", "postgres://?service=shop&dbname=", "no database"},
		{"shop", "postgres://", "no host and no database"},
		{"shop", "postgres://h/db", "no port"},
	} {
		t.Setenv("PGSERVICE", test.service)
		cfg, err := pgx.ParseConfig(test.url)
		if err != nil {
			t.Fatalf("%s: the driver refuses it: %v", test.url, err)
		}
		err = named(test.url, cfg)
		if test.refused != "" {
			expect(t, test.url, err, store.ErrRefused, test.refused)
		} else if err != nil || cfg.Host != "h" || cfg.Port != 7777 || cfg.Database != "db" {
			t.Errorf("%s: %s, %d, %s, %v", test.url, cfg.Host, cfg.Port, cfg.Database, err)
		}
	}
}

func FuzzThePostgresDriverUsesWhatItsURLNames(f *testing.F) {
	elsewhere(f.Setenv, "7777")
	for _, seed := range []string{"u:p@h:1/db", "[::1]:2,b/c?x=y", "?host=%68&dbname=d&port=", "a%40b@c/d%40e", "h:1?database=/", ",:/%20"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		url := "postgres://" + rest
		set := postgresSettings(url)
		cfg, err := pgx.ParseConfig(url)
		if _, service := set["service"]; service || err != nil || named(url, cfg) != nil {
			return
		}
		hosts := strings.Join(slices.Compact(strings.Split(set["host"], ",")), ",")
		if got := hostsOf(cfg); got != hosts || cfg.Database != set["database"] || cfg.Port == 7777 && !strings.Contains(set["port"], "7777") {
			t.Errorf("%q: the driver uses %q, port %d and %q; the URL sets %q", url, got, cfg.Port, cfg.Database, set)
		}
	})
}
