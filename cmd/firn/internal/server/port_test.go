package server_test

import (
	"context"
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// dialGRPC returns a connection to the port of gRPC, with TLS if config is not nil.
func dialGRPC(t *testing.T, v *serving, config *tls.Config) *grpc.ClientConn {
	t.Helper()
	with := insecure.NewCredentials()
	if config != nil {
		with = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient("passthrough:///"+v.grpc, grpc.WithTransportCredentials(with))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// generateAt takes an id of a namespace over a connection.
func generateAt(t *testing.T, conn *grpc.ClientConn, namespace string) (*peer.Peer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var from peer.Peer
	_, err := firnv1.NewIDServiceClient(conn).Generate(ctx, &firnv1.GenerateRequest{Namespace: namespace}, grpc.Peer(&from))
	return &from, err
}

// A client with many connections of gRPC must not have the server restarted.
func TestProbesOverGRPCAreAnsweredWhenAllConnectionsAreBusy(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\nlimits: {connections: 4, share: 100}\n")
	for range 4 {
		watch, err := health.NewHealthClient(dialGRPC(t, v, nil)).Watch(t.Context(), &health.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	conn := dialGRPC(t, v, nil)
	if _, err := health.NewHealthClient(conn).Check(t.Context(), &health.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	if _, err := generateAt(t, conn, "orders"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "too many connections") {
		t.Error(err)
	}
	if answer := fetch(t, fresh(t), "http://"+v.addr+"/metrics"); !strings.Contains(answer.body, `firn_connections{listener="grpc"} 4`) ||
		!strings.Contains(answer.body, `firn_connections_refused_total{listener="grpc"} 1`) {
		t.Error("the metrics lack the connections of gRPC")
	}
}

func TestAnIdleConnectionOfGRPCLeavesItsPlaceToANewOne(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\nlimits: {connections: 2, share: 100}\n")
	for range 2 {
		if _, err := generateAt(t, dialGRPC(t, v, nil), "orders"); err != nil {
			t.Fatal(err)
		}
	}
	settles(t, "the answer to a new client", int(codes.OK), func() int {
		_, err := generateAt(t, dialGRPC(t, v, nil), "orders")
		return int(status.Code(err))
	})
}

func TestClientCertificatesIdentifyTokensOverGRPC(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 7)
	into(t, folder, cert, key)
	write(t, filepath.Join(folder, "ca.pem"), ca.pem)
	// The second connection is the last that its address may have. On the address of HTTP it would be offered HTTP/1.1.
	v := serve(t, "namespaces: {orders: {}, users: {}}\nlimits: {connections: 2, share: 100}\n"+
		tlsKeys(folder, ", client_ca: "+filepath.Join(folder, "ca.pem")+", client_auth: optional")+
		"tokens:\n  - {name: shop, certificate: shop.example.org, namespaces: [orders]}\n"+
		"  - {name: pay, sha256: "+access.Hash("p")+", namespaces: ['*']}\n")
	good, goodKey := ca.valid("shop.example.org", 8)
	pair, err := tls.X509KeyPair([]byte(good), []byte(goodKey))
	if err != nil {
		t.Fatal(err)
	}
	with := dialGRPC(t, v, &tls.Config{RootCAs: ca.roots(), ServerName: "127.0.0.1", Certificates: []tls.Certificate{pair}})
	if _, err := generateAt(t, with, "orders"); err != nil {
		t.Error(err)
	}
	if _, err := generateAt(t, with, "users"); status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
	without := dialGRPC(t, v, &tls.Config{RootCAs: ca.roots(), ServerName: "127.0.0.1"})
	if _, err := generateAt(t, without, "orders"); status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
}

func TestNewConnectionsOfGRPCHaveTheNewCertificate(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 1)
	into(t, folder, cert, key)
	v := serve(t, "namespaces: {orders: {}}\n"+tlsKeys(folder, "")+"anonymous: ['*']\n")
	serialOf := func(conn *grpc.ClientConn) int64 {
		t.Helper()
		from, err := generateAt(t, conn, "orders")
		if err != nil {
			t.Fatal(err)
		}
		return from.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].SerialNumber.Int64()
	}
	config := &tls.Config{RootCAs: ca.roots(), ServerName: "127.0.0.1"}
	kept := dialGRPC(t, v, config)
	if n := serialOf(kept); n != 1 {
		t.Error(n)
	}
	v.turn()
	second, secondKey := ca.valid("server", 2)
	into(t, folder, second, secondKey)
	v.turn()
	if old, now := serialOf(kept), serialOf(dialGRPC(t, v, config)); old != 1 || now != 2 {
		t.Errorf("certificate %d on the connection that was there, %d on a new one", old, now)
	}
}

func TestOnlyHTTP2IsNegotiatedOnThePortOfGRPC(t *testing.T) {
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	cert, key := ca.valid("server", 7)
	into(t, folder, cert, key)
	v := serve(t, "namespaces: {orders: {}}\n"+tlsKeys(folder, ""))
	for _, offers := range [][]string{{"http/1.1"}, nil} {
		c, err := tls.Dial("tcp", v.grpc, &tls.Config{RootCAs: ca.roots(), NextProtos: offers})
		if err != nil {
			continue
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("a client that offers %v is served", offers)
		}
		_ = c.Close()
	}
}
