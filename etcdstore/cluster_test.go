package etcdstore_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/etcdstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// Calls go to the members in turn: a read to one cluster, the write over it to the other.
func TestMembersOfTwoClustersAreNotOneStore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, other := servers.Etcd(t), servers.Etcd(t, "--initial-cluster-token=other")
	url := "etcd://" + first.Addr() + "," + other.Addr()
	expect(t, "both are there", try(url), store.ErrUnavailable, "to the cluster", "name the members of one cluster")

	other.Kill()
	s := open(t, url)
	e, err := s.CompareAndSwap(ctx, "k", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	other.Restart()
	for ; err == nil; _, err = s.Get(ctx, "k") {
	}
	expect(t, "the other came later", err, store.ErrUnavailable, "name the members of one cluster")

	first.Kill()
	for !errors.Is(err, store.ErrNotFound) { // it replaced the first
		if _, err = s.Get(ctx, "k"); err == nil || ctx.Err() != nil {
			t.Fatalf("the other is alone: %v", err)
		}
	}
	made, err := s.CompareAndSwap(ctx, "k", 0, nil)
	if err != nil || made.Life == e.Life {
		t.Errorf("%+v, %v", made, err)
	}
}

// Two of three members are lost for good, and one is made again at its address while the third still runs.
func TestAMemberWithoutALeaderDoesNotKeepItsClusterAlive(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, other := servers.Etcd(t), servers.Etcd(t, "--initial-cluster-token=other")
	other.Kill()
	s := open(t, "etcd://"+first.Addr()+","+other.Addr())
	if _, err := s.CompareAndSwap(ctx, "k", 0, nil); err != nil {
		t.Fatal(err)
	}
	must[*clientv3.MemberAddResponse](t)(raw(t, first, "", "").MemberAdd(ctx, []string{"http://" + servers.Nowhere(t)}))
	other.Restart()
	var err error
	for !errors.Is(err, store.ErrNotFound) {
		if _, err = s.Get(ctx, "k"); ctx.Err() != nil {
			t.Fatalf("the other is alone: %v", err)
		}
	}
}

// As with a host name that has the addresses of two, or a load balancer.
func TestANameOfTwoClustersIsNotOneStore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	addrs := []string{servers.Etcd(t).Addr(), servers.Etcd(t, "--initial-cluster-token=other").Addr()}
	balancer := servers.NewProxy(t, "", nil)
	balancer.Choose(func(n int) string { return addrs[n%2] })
	expect(t, "connections in turn", try("etcd://"+balancer.Addr()), store.ErrUnavailable, "to the cluster", "name the members of one cluster")

	// The first two: one for the store's calls, one for the query of the cluster.
	balancer.Choose(func(n int) string { return addrs[max(n-2, 0)%2] })
	s := open(t, "etcd://"+balancer.Addr())
	if _, err := s.CompareAndSwap(ctx, "k", 0, nil); err != nil {
		t.Fatal(err)
	}
	found, err := s.Traits().Examine(ctx)
	if err != nil || found[0].Verdict != store.Bad || !strings.Contains(found[0].Says, "lead to 2 clusters") {
		t.Errorf("%v, %v", found, err)
	}
}

// Like two clusters that were started without settings.
func TestExamineFindsTwoClustersWithOneID(t *testing.T) {
	t.Parallel()
	same := []string{"--initial-advertise-peer-urls", "http://localhost:2380", "--initial-cluster", "n1=http://localhost:2380"}
	addrs := []string{servers.Etcd(t, same...).Addr(), servers.Etcd(t, same...).Addr()}
	if _, err := open(t, "etcd://"+addrs[0]).CompareAndSwap(t.Context(), "k", 0, nil); err != nil {
		t.Fatal(err)
	}
	balancer := servers.NewProxy(t, "", nil)
	balancer.Choose(func(n int) string { return addrs[n%2] })
	for url, want := range map[string]store.Verdict{
		"etcd://" + addrs[0]: store.Doubtful, "etcd://" + balancer.Addr(): store.Bad, "etcd://" + strings.Join(addrs, ","): store.Bad,
	} {
		found, err := open(t, url).Traits().Examine(t.Context())
		if err != nil || found[0].Verdict != want {
			t.Errorf("%s: %v, %v", url, found, err)
		}
	}
}

// They advertise https://. The dialer of Open speaks TLS by itself; a program's own client does by the URL.
func TestExamineReachesMembersWithTLS(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cert, key := servers.Certificate(t, t.TempDir())
	server := servers.Etcd(t, "--cert-file", cert, "--key-file", key)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must[[]byte](t)(os.ReadFile(cert)))
	client := must[*clientv3.Client](t)(clientv3.New(clientv3.Config{Endpoints: []string{"https://" + server.Addr()}, TLS: &tls.Config{RootCAs: roots}}))
	own := must[*etcdstore.Store](t)(etcdstore.OpenClient(ctx, client, ""))
	defer own.Close()
	for what, s := range map[string]*etcdstore.Store{"Open": open(t, "etcd://"+server.Addr()+"?tls=true&tls_ca="+cert), "OpenClient": own} {
		if found, err := s.Traits().Examine(ctx); err != nil || found[0].Says != "1 of 1 members answer" {
			t.Errorf("%s: %v, %v", what, found, err)
		}
	}
}
