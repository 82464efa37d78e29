package rpc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// withTokens returns a configuration in which each token may use some of the namespaces.
func withTokens(names ...string) string {
	config := "namespaces: {users: {kind: segment}, orders: {}, slow: {kind: segment}}\nlimits: {rate: {slow: 2000/s}}\ntokens:\n"
	for _, name := range names {
		config += fmt.Sprintf("  - {name: %s, sha256: %x, namespaces: [users, slow]}\n", name, sha256.Sum256([]byte("secret of "+name)))
	}
	return config
}

func as(ctx context.Context, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer secret of "+name)
}

func TestATokenGrantsItsNamespaces(t *testing.T) { overEach(t, testATokenGrantsItsNamespaces) }

func testATokenGrantsItsNamespaces(t *testing.T, over transport) {
	srv := start(t, withTokens("shop", "desk"), over)
	client, conn := srv.dial(t)
	for _, c := range []struct {
		ctx       context.Context
		namespace string
		want      codes.Code
	}{
		{as(t.Context(), "shop"), "users", codes.OK},
		{as(t.Context(), "desk"), "users", codes.OK},
		{as(t.Context(), "shop"), "orders", codes.PermissionDenied},
		{as(t.Context(), "unknown"), "users", codes.Unauthenticated},
		{t.Context(), "users", codes.Unauthenticated},
	} {
		_, err := client.Generate(c.ctx, &firnv1.GenerateRequest{Namespace: c.namespace})
		if status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", c.namespace, err, c.want)
		}
		stream, err := client.GenerateStream(c.ctx, &firnv1.GenerateStreamRequest{Namespace: c.namespace, Total: proto.Int64(1)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", c.namespace, err, c.want)
		}
	}
	listed, err := client.ListNamespaces(as(t.Context(), "shop"), &firnv1.ListNamespacesRequest{})
	if err != nil || len(listed.GetNamespaces()) != 2 {
		t.Error(listed, err)
	}
	// Health probes have no token.
	if _, err := health.NewHealthClient(conn).Check(t.Context(), &health.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
}

func TestARevokedTokenEndsItsStreams(t *testing.T) { overEach(t, testARevokedTokenEndsItsStreams) }

func testARevokedTokenEndsItsStreams(t *testing.T, over transport) {
	srv := start(t, withTokens("shop", "desk"), over)
	client, _ := srv.dial(t)
	open := func(name string) grpc.ServerStreamingClient[firnv1.GenerateResponse] {
		stream, err := client.GenerateStream(as(t.Context(), name), &firnv1.GenerateStreamRequest{Namespace: "users"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		return stream
	}
	shop, desk := open("shop"), open("desk")
	path := filepath.Join(t.TempDir(), "firn.yaml")
	if err := os.WriteFile(path, []byte(withTokens("desk")), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := settings.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Apply(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = shop.Recv() // first, messages sent before the revocation
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
	for range 10_000 { // more messages than the buffers hold
		if _, err := desk.Recv(); err != nil {
			t.Fatalf("the other token's stream: %v", err)
		}
	}
}

// The stream requests more than the rate allows at once.
func TestAStreamContinuesAtItsRate(t *testing.T) { overEach(t, testAStreamContinuesAtItsRate) }

func testAStreamContinuesAtItsRate(t *testing.T, over transport) {
	client, _ := start(t, withTokens("shop"), over).dial(t)
	start := time.Now()
	stream, err := client.GenerateStream(as(t.Context(), "shop"), &firnv1.GenerateStreamRequest{
		Namespace: "slow", Total: proto.Int64(4000), Batch: count(500), Form: firnv1.Form_FORM_RUNS,
	})
	if err != nil {
		t.Fatal(err)
	}
	for ids := 0; ids < 4000; {
		answer, err := stream.Recv()
		if err != nil {
			t.Fatalf("after %d ids: %v", ids, err)
		}
		ids += len(expand(answer))
	}
	if took := time.Since(start); took < 500*time.Millisecond {
		t.Errorf("4,000 ids at 2,000 a second took %v", took)
	}
	if _, err := client.Generate(as(t.Context(), "shop"), &firnv1.GenerateRequest{Namespace: "slow", Count: count(2000)}); status.Code(err) != codes.ResourceExhausted {
		t.Error(err) // Generate does not wait for the rate
	}
}

func TestGRPCOverTheConfiguredTLS(t *testing.T) { overEach(t, testGRPCOverTheConfiguredTLS) }

func testGRPCOverTheConfiguredTLS(t *testing.T, over transport) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	folder := t.TempDir()
	for name, content := range map[string][]byte{"cert.pem": cert, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	srv := start(t, strings.ReplaceAll("tls: {cert: DIR/cert.pem, key: DIR/key.pem}\n", "DIR", folder)+withTokens("shop"), over)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	conn, err := grpc.NewClient(srv.target, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(roots, "")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answer, err := firnv1.NewIDServiceClient(conn).Generate(as(t.Context(), "shop"), &firnv1.GenerateRequest{Namespace: "users", Count: count(10)})
	if err != nil || len(answer.GetIds()) != 10 {
		t.Error(answer, err)
	}
}
