package doctor

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

func init() {
	cases["etcd"] = func(d *doctor) {
		// One member, then two, three, two and one.
		peers := fmt.Sprintf("n1=http://127.0.0.1:%d", servers.FreePort(d))
		first := d.member("n1", peers, "new")
		url := "etcd://" + first.Addr()
		d.finds("doubtful", "quorum", "with three members one may fail", "--store", url)
		d.finds("good", "alarms", "no alarms", "--store", url)
		d.finds("good", "write", "is confirmed", "--store", url)
		d.finds("good", "clock", "has none to compare with", "--store", url)
		var others []*servers.Server
		for n := 2; n <= 3; n++ {
			at := fmt.Sprintf("http://127.0.0.1:%d", servers.FreePort(d))
			name := fmt.Sprint("n", n)
			d.etcdctl(first, "member", "add", name, "--peer-urls="+at)
			peers += "," + name + "=" + at
			others = append(others, d.member(name, peers, "existing"))
			if n == 2 {
				d.finds("doubtful", "quorum", "2 members tolerate no more failures than 1", "--store", url)
			}
		}
		d.finds("good", "quorum", "3 of 3 members answer", "--store", url)
		d.etcdctl(first, "user", "add", "root:"+password)
		d.etcdctl(first, "role", "add", "reader")
		d.etcdctl(first, "role", "grant-permission", "reader", "read", "--prefix=true", "firn/")
		d.etcdctl(first, "user", "add", "reader:"+password)
		d.etcdctl(first, "user", "grant-role", "reader", "reader")
		d.etcdctl(first, "role", "add", "firn")
		d.etcdctl(first, "role", "grant-permission", "firn", "readwrite", "--prefix=true", "firn/")
		d.etcdctl(first, "user", "add", "firn:"+password)
		d.etcdctl(first, "user", "grant-role", "firn", "firn")
		d.etcdctl(first, "user", "grant-role", "root", "root")
		d.etcdctl(first, "auth", "enable")
		as := func(user string) string { return "etcd://" + user + ":" + password + "@" + first.Addr() }
		d.finds("bad", "write", "etcdctl role grant-permission", "--store", as("reader"))
		d.finds("good", "write", "is confirmed", "--store", as("firn"))
		d.finds("bad", "store", "etcdctl role grant-permission", "--store", as("firn")+"/shop")
		d.finds("good", "quorum", "3 of 3 members answer", "--store", as("firn"))
		d.finds("doubtful", "quorum", "whether they have the same data is unknown", "--store", as("firn")+"/shop") // it asks without a user
		others[0].Kill()
		d.finds("doubtful", "quorum", "start n2; the cluster works as long as 2 answer", "--store", as("firn"))
		others[1].Kill()
		d.finds("bad", "quorum", "1 of 3 members answer", "--store", as("firn")) // it cannot even log in
		first.Kill()
		d.finds("bad", "quorum", "0 of the 1 servers named answer", "--store", as("firn"))
	}
	cases["etcd without a leader"] = func(d *doctor) {
		// Two members whose clients reach them, but which lose each other.
		var peers []string
		var between []*servers.Proxy
		var members []*servers.Server
		own := []string{fmt.Sprint("127.0.0.1:", servers.FreePort(d)), fmt.Sprint("127.0.0.1:", servers.FreePort(d))}
		for n, at := range own {
			between = append(between, servers.NewProxy(d, at, nil))
			peers = append(peers, fmt.Sprintf("n%d=http://%s", n, between[n].Addr()))
		}
		var starting sync.WaitGroup
		members = make([]*servers.Server, len(own))
		for n, at := range own {
			starting.Go(func() { // it waits for the other
				members[n] = servers.Etcd(d, "--name", fmt.Sprint("n", n), "--listen-peer-urls", "http://"+at,
					"--initial-advertise-peer-urls", "http://"+between[n].Addr(), "--initial-cluster", strings.Join(peers, ","))
			})
		}
		starting.Wait()
		url := "etcd://" + members[0].Addr() + "," + members[1].Addr()
		d.finds("good", "write", "is confirmed", "--store", url)
		for _, p := range between {
			p.Refuse(true)
		}
		d.finds("bad", "quorum", "2 of 2 members answer, and none knows a leader", "--store", url)
		d.finds("good", "alarms", "no alarms", "--store", url)
	}
	cases["etcd of two clusters"] = func(d *doctor) {
		addrs := []string{servers.Etcd(d).Addr(), servers.Etcd(d, "--initial-cluster-token=other").Addr()}
		balancer := servers.NewProxy(d, "", nil)
		// The first two of a process: one for the store's calls, one for the query of the cluster.
		balancer.Choose(func(n int) string { return addrs[max(n-2, 0)%2] })
		d.finds("bad", "quorum", "lead to 2 clusters", "--store", "etcd://"+balancer.Addr())
	}
	cases["etcd restored from two snapshots, with a compaction between"] = func(d *doctor) {
		source := servers.Etcd(d)
		url := "etcd://" + source.Addr()
		s, err := storeurl.Open(d.Context(), url)
		d.must(err)
		defer s.Close()
		dir := d.TempDir()
		var peers []string
		for n := range 3 {
			peers = append(peers, fmt.Sprintf("n%d=http://127.0.0.1:%d", n, servers.FreePort(d)))
			_, err := s.CompareAndSwap(d.Context(), fmt.Sprint("k", n), 0, nil)
			d.must(err)
			if n == 2 {
				d.etcdctl(source, "compact", "3")
			}
			d.etcdctl(source, "snapshot", "save", fmt.Sprintf("%s/%d", dir, n/2)) // the first two have the same
		}
		cluster := strings.Join(peers, ",")
		members := make([]string, 3)
		var starting sync.WaitGroup
		for n, peer := range peers {
			name, at, _ := strings.Cut(peer, "=")
			data := fmt.Sprint(dir, "/", name)
			d.etcdctl(source, "snapshot", "restore", fmt.Sprintf("%s/%d", dir, n/2), "--data-dir", data, "--name", name,
				"--initial-advertise-peer-urls", at, "--initial-cluster", cluster, "--initial-cluster-token", "restored")
			starting.Go(func() { // it waits for the others
				members[n] = servers.Etcd(d, "--data-dir", data, "--name", name, "--listen-peer-urls", at, "--initial-advertise-peer-urls", at,
					"--initial-cluster", cluster, "--initial-cluster-token", "restored").Addr()
			})
		}
		starting.Wait()
		url = "etcd://" + strings.Join(members, ",")
		restored, err := storeurl.Open(d.Context(), url)
		d.must(err)
		defer restored.Close()
		found, err := restored.Traits().Examine(d.Context())
		if d.must(err); found[0].Verdict != store.Bad {
			d.Errorf("before the first write: %v", found)
		}
		d.finds("bad", "quorum", "its members have different data", "--store", url)
	}
	cases["etcd without space"] = func(d *doctor) {
		url := "etcd://" + servers.Etcd(d, "--quota-backend-bytes", "200000").Addr()
		s, err := storeurl.Open(d.Context(), url)
		d.must(err)
		defer s.Close()
		ctx, cancel := context.WithTimeout(d.Context(), time.Minute)
		defer cancel()
		for i := 0; err == nil && ctx.Err() == nil; i++ {
			_, err = s.CompareAndSwap(ctx, fmt.Sprint("k", i), 0, make([]byte, store.MaxValueBytes))
		}
		d.finds("bad", "alarms", "NOSPACE refuses all writes", "--store", url)
		d.finds("bad", "write", "its quota is used up", "--store", url)
	}
	cases["zookeeper"] = func(d *doctor) {
		alone := servers.ZooKeeper(d)
		url := "zookeeper://" + alone.Addr()
		d.finds("doubtful", "ensemble", "with three servers one may fail", "--store", url)
		d.finds("good", "write", "is confirmed", "--store", url)
		d.finds("doubtful", "ensemble", "or add srvr to 4lw.commands.whitelist", "--store", url+","+servers.Nowhere(d))
		ensemble := servers.ZooKeeper(d, servers.Ensemble(d)...)
		d.finds("doubtful", "ensemble", "name all servers of the ensemble", "--store", "zookeeper://"+ensemble.Addr())
		d.finds("bad", "version", "upgrade to 3.9.4 or later", "--store", "zookeeper://"+ensemble.Addr()) // Debian 12 has 3.8.0
		d.finds("bad", "ensemble", "they do not belong to one ensemble", "--store", url+","+ensemble.Addr())
		alone.Kill()
		d.finds("bad", "ensemble", "must be up and see each other", "--store", url)
	}
	cases["zookeeper of another user"] = func(d *doctor) {
		server := servers.ZooKeeper(d)
		d.finds("good", "write", "is confirmed", "--store", "zookeeper://firn:"+password+"@"+server.Addr())
		d.finds("bad", "write", "the znodes belong to another user", "--store", "zookeeper://"+server.Addr())
	}
}

// member starts a member of a cluster, whose peers are NAME=URL.
func (d *doctor) member(name, peers, state string) *servers.Server {
	d.Helper()
	_, at, _ := strings.Cut(peers[strings.LastIndex(peers, name+"="):], "=")
	return servers.Etcd(d, "--name", name, "--listen-peer-urls", at, "--initial-advertise-peer-urls", at,
		"--initial-cluster", peers, "--initial-cluster-state", state)
}

func (d *doctor) etcdctl(at *servers.Server, args ...string) {
	d.Helper()
	var last string
	defer func() {
		if d.Failed() {
			d.Logf("etcdctl: %s", last)
		}
	}()
	d.until("etcdctl "+strings.Join(args, " "), func() bool { // a member that joined may not be counted yet
		cmd := exec.Command("etcdctl", append([]string{"--endpoints", at.Addr()}, args...)...)
		cmd.Env = append(cmd.Environ(), "ETCDCTL_API=3")
		out, err := cmd.CombinedOutput()
		last = string(out)
		return err == nil
	})
}
