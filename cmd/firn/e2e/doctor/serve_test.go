package doctor

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/storetest/servers"
)

// What prevents a server, or its first requests.
func init() {
	cases["what a server would do"] = func(d *doctor) {
		url := "redis://" + servers.Redis(d).Addr()
		s, err := storeurl.Open(d.Context(), url)
		d.must(err)
		d.Cleanup(func() { d.must(s.Close()) })
		with := func(text string) []string { return []string{"--store", url, "--config", d.file(text)} }

		_, err = s.CompareAndSwap(d.Context(), "firn/counter:foreign", 0, []byte("no record of ours"))
		d.must(err)
		_, err = s.CompareAndSwap(d.Context(), "firn/foreign/pool", 0, []byte("no record of ours"))
		d.must(err)
		d.finds("bad", "pool", "→ name another pool", "--store", url, "--pool", "foreign")
		d.firn("next", "--store", url, "--kind", "segment", "--name", "seg")
		all, err := sequence.New(sequence.Config{Store: s})
		d.must(err)
		d.Cleanup(func() { _ = all.Close(d.Context()) }) // the store may be closed
		end, err := all.Namespace("end")
		d.must(err)
		d.must(end.Raise(d.Context(), firn.MaxID))
		d.finds("bad", "namespace", `no ids of seg can be made: sequence "seg": read: the counter "seg" has the kind "segment"`, with("namespaces: {seg: {kind: sequence}}")...)
		d.finds("bad", "namespace", "correct the configuration", with("namespaces: {seg: {kind: number, template: 'A{n:6}'}}")...)
		d.finds("bad", "namespace", "not offset 1 of stride 2", with("namespaces: {seg: {kind: segment, offset: 1, stride: 2}}")...)
		d.finds("bad", "namespace", "was not written by Firn", with("namespaces: {foreign: {kind: segment}}")...)
		d.finds("bad", "namespace", "0 ids left", with("namespaces: {end: {kind: sequence}}")...)

		worker := int64(3)
		l, err := lease.Open(d.Context(), lease.Config{Store: s, Pool: "shop", Pinned: &worker, Generator: firn.Config{}})
		d.must(err)
		d.Cleanup(func() { _ = l.Close(d.Context()) }) // the store may be closed
		d.finds("bad", "pool", "or another pool", with("namespaces: {a: {pool: shop, strict: 5m50s}}")...)
		d.finds("bad", "pool", `pool "shop" has layout`, with("namespaces: {a: {pool: shop, layout: twitter}}")...)
		d.finds("doubtful", "pool", "shop: a server waits there", with("namespaces: {a: {pool: shop, worker: 3}}")...)
		d.firn("next", "--store", url, "--pool", "dc", "--layout", "41/2/8/12", "--datacenter", "2")
		d.finds("doubtful", "pool", "dc: this configuration has datacenter 0, and all workers of the pool so far have another, such as 2 → if the server belongs to that one, set datacenter: 2",
			with("namespaces: {a: {pool: dc, layout: 41/2/8/12}}")...)
		d.finds("doubtful", "pool", "brief: with a window of 5s, ids may end 750ms after the store goes away", with("namespaces: {a: {pool: brief, window: 5s}}")...)
		d.finds("good", "pool", "dc: 0 of 1,024 workers are held", with("namespaces: {a: {pool: dc, layout: 41/2/8/12, datacenter: 2}}")...)
		began := time.Now().Add(-firn.DefaultLayout().End().Sub(firn.DefaultLayout().Epoch()) + time.Hour).UTC()
		d.finds("doubtful", "layout", "runs out of time on", with(fmt.Sprintf("namespaces: {a: {pool: old, layout: firn, epoch: %q}}", began.Format(time.RFC3339)))...)

		d.finds("doubtful", "pool", "v1: ids carry times ahead of the clock until it has caught up, from 2035-01-01T00:00:00Z", with("namespaces: {a: {clock: virtual, clock_from: 2035-01-01, pool: v1}}")...)

		taken, err := net.Listen("tcp", "127.0.0.1:0")
		d.must(err)
		d.Cleanup(func() { _ = taken.Close() }) // it accepted nothing
		d.finds("doubtful", "listen", "a program listens on "+taken.Addr().String()+" already", with("listen: {http: "+taken.Addr().String()+"}")...)
		d.finds("bad", "listen", "no server can listen there", with("listen: {http: '192.0.2.1:7070'}")...)
		port := fmt.Sprintf(":%d", servers.FreePort(d))
		free := "127.0.0.1" + port
		for _, listen := range []string{
			"http: '" + free + "', resp: '" + free + "'",
			"http: '0.0.0.0" + port + "', resp: 'localhost" + port + "'",
			"http: 'localhost" + port + "', grpc: '" + port + "'",
			"grpc: '" + free + "', resp: '" + free + "'",
			"http: '127.0.0.1:7071', grpc: off",
		} {
			d.finds("bad", "listen", "the server cannot listen on", with("listen: {"+listen+"}")...)
		}
		d.finds("doubtful", "listen", "give one of them another port: gRPC is only served on the address of HTTP", with("listen: {http: '127.0.0.1:7072'}")...)
		d.finds("doubtful", "connections", "raise ulimit -n", with("limits: {connections: 1000000}")...)
		d.within = []string{"env", "FIRN_DATACENTER=1", os.Args[0]}
		d.finds("bad", "environment", "is set here: with a configuration no server starts that has it too", with("namespaces: {}")...)
		d.within = nil
		d.refuses("a port is at most 65535", with("listen: {http: '127.0.0.1:99999'}")...)
		itself := d.file("namespaces: {}")
		d.must(appendTo(itself, "audit: {file: "+itself+"}\n"))
		d.refuses("the audit log would be written into the configuration", "--store", url, "--config", itself)
	}
}
