package hostile

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// long is how long each attack lasts; HOSTILE_FOR sets it, as 5m.
func long(t *testing.T) (d time.Duration, measured bool) {
	t.Helper()
	text := os.Getenv("HOSTILE_FOR")
	if text == "" {
		return time.Second, false
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d, true
}

// What other callers must see while one address attacks, and the server must keep to.
const (
	slowest  = 50 * time.Millisecond
	memory   = 256 // megabytes
	released = 30 * time.Second
)

func TestOneHostileAddressTakesNothingFromOthers(t *testing.T) {
	d, measured := long(t)
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			v := start(t, a.config, "")
			ctx, cancel := context.WithCancel(t.Context()) // gRPC would send a deadline, and the server end calls at it
			defer cancel()
			defer time.AfterFunc(d, cancel).Stop()
			var seen, alive, ownAlive experience
			var group sync.WaitGroup
			group.Go(func() { v.others(ctx, &seen) })
			group.Go(func() {
				for ctx.Err() == nil {
					began := time.Now()
					alive.add(time.Since(began), v.probe(otherAddress, "/livez"))
					ownAlive.add(time.Since(began), v.probe(hostileAddress, "/livez"))
					time.Sleep(100 * time.Millisecond)
				}
			})
			stop := v.attack(a.name)
			defer stop()
			group.Wait()
			_, most := v.memory()
			conns := v.metric("firn_connections")
			stop()
			var left int
			began := time.Now()
			for {
				if left, _ = v.memory(); v.metric("firn_connections") < 10 && (!measured || left <= memory/2 || time.Since(began) > released) {
					break
				}
				if time.Since(began) > released+5*time.Second {
					t.Errorf("after %v %v connections are open", released, v.metric("firn_connections"))
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			left, _ = v.memory()
			line := fmt.Sprintf("%-42s others p50 %8v p99 %8v max %8v failed %v of %d; /livez failed %d of %d (from its address %d); memory %d MB, %d MB after %v; %v connections",
				a.name, seen.quantile(0.5).Round(10*time.Microsecond), seen.quantile(0.99).Round(10*time.Microsecond), seen.quantile(1).Round(10*time.Microsecond), sum(seen.failures), len(seen.took),
				sum(alive.failures), len(alive.took)+sum(alive.failures), sum(ownAlive.failures), most, left, time.Since(began).Round(time.Second), conns)
			fmt.Println(line)
			for why, n := range seen.failures {
				t.Logf("%d others: %s", n, why)
			}
			for why, n := range ownAlive.failures {
				t.Logf("%d own probes: %s", n, why)
			}
			if len(seen.took) == 0 || len(alive.took) == 0 {
				t.Error("no other client was served")
			}
			if !measured { // a second on a busy machine says nothing about times
				return
			}
			if len(alive.failures) > 0 {
				t.Errorf("/livez failed: %v", alive.failures)
			}
			if len(seen.failures) > 0 {
				t.Errorf("requests of others failed: %v", seen.failures)
			}
			if most >= memory {
				t.Errorf("%d MB of memory, at most %d are allowed", most, memory)
			}
			if p99 := seen.quantile(0.99); p99 >= slowest {
				t.Errorf("others wait %v, at most %v are allowed", p99, slowest)
			}
		})
	}
}

// With few descriptors, the connections above the limit of two listeners leave enough of them to accept a probe.
func TestConnectionsToAllListenersLeaveDescriptorsForProbes(t *testing.T) {
	for _, descriptors := range []int{32, 64, 100} {
		t.Run(fmt.Sprint(descriptors), func(t *testing.T) {
			v := start(t, declared, fmt.Sprintf("ulimit -n %d;", descriptors))
			for range 200 {
				for _, to := range []string{v.grpc, v.resp, v.http} {
					c, err := v.connect(hostileAddress, to)
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
				}
			}
			for range 5 {
				for _, address := range []string{otherAddress, hostileAddress} {
					if err := v.probe(address, "/livez"); err != nil {
						t.Errorf("from %s: %v", address, err)
					}
				}
			}
		})
	}
}

func sum(failures map[string]int) (n int) {
	for _, times := range failures {
		n += times
	}
	return n
}

// established reports whether a socket is connected in both directions.
func established(fd uintptr) bool {
	var info syscall.TCPInfo
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	const tcpEstablished = 1
	return errno == 0 && info.State == tcpEstablished
}
