//go:build unix

package servers_test

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/firn-id/firn/store/storetest/servers"
)

func TestServersStartDieComeBackAndGo(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) *servers.Server{
		"redis":     func(t *testing.T) *servers.Server { return servers.Redis(t) },
		"mariadb":   func(t *testing.T) *servers.Server { return servers.MariaDB(t) },
		"postgres":  func(t *testing.T) *servers.Server { return servers.Postgres(t) },
		"etcd":      func(t *testing.T) *servers.Server { return servers.Etcd(t) },
		"zookeeper": func(t *testing.T) *servers.Server { return servers.ZooKeeper(t) },
	} {
		t.Run(name, func(t *testing.T) {
			var s *servers.Server
			t.Run("lives", func(t *testing.T) {
				s = start(t)
				answers(t, s.Addr(), true)
				s.Kill()
				answers(t, s.Addr(), false)
				s.Restart()
				answers(t, s.Addr(), true)
			})
			if s == nil {
				t.Skip("not installed")
			}
			answers(t, s.Addr(), false)
			if _, err := os.Stat(s.Path("")); !os.IsNotExist(err) {
				t.Errorf("its folder is still there: %v", err)
			}
		})
	}
}

func answers(t *testing.T, addr string, want bool) {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		err = c.Close()
	}
	if (err == nil) != want {
		t.Errorf("%s: %v", addr, err)
	}
}
