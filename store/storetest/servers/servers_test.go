//go:build unix

package servers_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
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

func TestAFreePortIsReserved(t *testing.T) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(servers.FreePort(t)))
	runtime.GC() // closes what nothing refers to
	if other, err := net.ListenPacket("udp", address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("another process may take %s: %v, %v", address, other, err)
	}
}

// A guard whose input ends without a word, as when this process dies, kills; one that was dismissed does not.
func TestAGuardKillsUnlessItIsDismissed(t *testing.T) {
	for word, want := range map[string]syscall.Signal{"": syscall.SIGKILL, "done\n": syscall.SIGTERM} {
		sleep := exec.Command("sleep", "60")
		if err := sleep.Start(); err != nil {
			t.Fatal(err)
		}
		guard, err := servers.Guard(sleep.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if word == "" {
			err = guard.Close()
		} else {
			for err == nil { // until the guard has ended
				_, err = io.WriteString(guard, word)
			}
			err = sleep.Process.Signal(want)
		}
		if err != nil {
			t.Error(err)
		}
		_ = sleep.Wait()
		if status, ok := sleep.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != want {
			t.Errorf("after %q it ended with %v", word, sleep.ProcessState)
		}
	}
}
