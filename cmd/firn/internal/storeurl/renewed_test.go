package storeurl

import (
	"cmp"
	"errors"
	"os"
	"os/user"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// give gives files to the user of a server, who is this one unless it is root.
func give(t *testing.T, name string, files ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	owner, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(owner.Uid)
	for _, file := range files {
		if err := cmp.Or(err, os.Chown(file, uid, -1)); err != nil {
			t.Fatal(err)
		}
	}
}

// Otherwise no connection succeeds once the old authority's certificate is gone, until the process restarts.
func TestARenewedAuthorityIsTrusted(t *testing.T) {
	t.Parallel()
	for kind, is := range map[string]struct {
		start func(t *testing.T, args ...string) database
		user  string
		args  []string // with CERT and KEY
		tls   string   // with CERT
	}{
		"mariadb":  {mariadb, "mysql", []string{"--ssl-cert=CERT", "--ssl-key=KEY"}, "?tls=true&tls_ca=CERT"},
		"postgres": {postgres, "postgres", []string{"-c", "ssl=on", "-c", "ssl_cert_file=CERT", "-c", "ssl_key_file=KEY"}, "?sslmode=verify-full&sslrootcert=CERT"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "firn-tls") // t.TempDir is not readable for the server's user
			if err == nil {
				t.Cleanup(func() {
					if err := os.RemoveAll(dir); err != nil {
						t.Error(err)
					}
				})
				err = os.Chmod(dir, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
			cert, key := servers.Certificate(t, dir)
			give(t, is.user, cert, key)
			named := strings.NewReplacer("CERT", cert, "KEY", key)
			var args []string
			for _, arg := range is.args {
				args = append(args, named.Replace(arg))
			}
			d := is.start(t, args...)
			d.fresh(t, "shop")
			s := opened(t, d.url(d.admin, "shop")+named.Replace(is.tls))
			read := func() error {
				if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
					return err
				}
				return nil
			}
			if err := read(); err != nil {
				t.Fatal(err)
			}
			servers.Certificate(t, dir)
			give(t, is.user, cert, key)
			d.server.Kill() // which ends connections
			d.server.Restart()
			err = read()
			if errors.Is(err, store.ErrUnavailable) { // it was asked on a connection that had ended
				err = read()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
