package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/store/storetest/servers"
)

// An object has the fields of an object in deploy/kubernetes.yaml that these tests check.
type object struct {
	Kind string
	Data map[string]string
	Spec struct {
		Ports []struct {
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Spec struct {
				Containers []struct {
					Args           []string
					Env            []struct{ Name string }
					Ports          []struct{ Name string }
					ReadinessProbe probe `yaml:"readinessProbe"`
					LivenessProbe  probe `yaml:"livenessProbe"`
					VolumeMounts   []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct{ Name string }
			}
		}
	}
}

type probe struct {
	HTTPGet struct{ Path, Port, Scheme string } `yaml:"httpGet"`
}

// kubernetes returns the objects in deploy/kubernetes.yaml by their kind.
func kubernetes(t *testing.T) map[string]object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, "kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]object{}
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o object
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatal(err)
		}
		objects[o.Kind] = o
	}
}

// certificate writes a certificate for 127.0.0.1 and its key, and returns a client that trusts it.
func certificate(t *testing.T, certFile, keyFile string) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
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
	for file, text := range map[string][]byte{certFile: cert, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// TestTheKubernetesDeploymentServes runs the container's command with its arguments, variables,
// mounts and probes, but with the mounts in a folder and on free ports.
func TestTheKubernetesDeploymentServes(t *testing.T) {
	objects := kubernetes(t)
	pod := objects["Deployment"].Spec.Template.Spec
	if len(pod.Containers) != 1 || len(objects) != 4 {
		t.Fatalf("%d containers, %d kinds of objects", len(pod.Containers), len(objects))
	}
	container := pod.Containers[0]
	if len(container.Env) != 1 || container.Env[0].Name != "FIRN_STORE" {
		t.Fatalf("variables %v", container.Env)
	}
	folder := t.TempDir()
	paths := []string{"0.0.0.0:7070", "127.0.0.1:0", "0.0.0.0:7071", "127.0.0.1:0", "0.0.0.0:7072", "127.0.0.1:0", strings.Repeat("0", 64), access.Hash("secret")}
	for i, mount := range container.VolumeMounts {
		if mount.Name != pod.Volumes[i].Name {
			t.Errorf("mount %s, volume %s", mount.Name, pod.Volumes[i].Name)
		}
		paths = append([]string{mount.MountPath + "/", filepath.Join(folder, mount.MountPath) + "/"}, paths...)
	}
	inFolder := strings.NewReplacer(paths...)
	client := certificate(t, inFolder.Replace("/etc/firn-tls/tls.crt"), inFolder.Replace("/etc/firn-tls/tls.key"))
	for name, text := range objects["ConfigMap"].Data {
		path := inFolder.Replace("/etc/firn/" + name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(inFolder.Replace(text)), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var args []string
	for _, arg := range container.Args {
		args = append(args, inFolder.Replace(arg))
	}
	cmd := exec.Command("firn", args...)
	// As in the container: no HOME, and no other variables.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "FIRN_STORE=redis://" + servers.Redis(t).Addr() + "/0"}
	port, _, _ := serveUntilTheEnd(t, cmd)

	get := func(path, token string) (status int, body string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	names := map[string]bool{}
	for _, p := range container.Ports {
		names[p.Name] = true
	}
	for _, p := range []probe{container.ReadinessProbe, container.LivenessProbe} {
		if status, body := get(p.HTTPGet.Path, ""); status != http.StatusOK || p.HTTPGet.Scheme != "HTTPS" || !names[p.HTTPGet.Port] {
			t.Errorf("probe %v: %d %s", p, status, body)
		}
	}
	for _, p := range objects["Service"].Spec.Ports {
		if !names[p.TargetPort] {
			t.Errorf("the service has a port %s, but the container does not", p.TargetPort)
		}
	}
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/v1/ids/orders", "secret", http.StatusOK},
		{"/v1/ids/items", "secret", http.StatusOK},
		{"/v1/ids/others", "secret", http.StatusForbidden},
		{"/v1/ids/orders", "", http.StatusUnauthorized},
		{"/metrics", "", http.StatusOK},
	} {
		if status, body := get(c.path, c.token); status != c.want {
			t.Errorf("%s with token %q: %d, want %d: %s", c.path, c.token, status, c.want, body)
		}
	}
}

// TestTheSystemdServiceRuns runs the unit's command, with the configuration in the document.
func TestTheSystemdServiceRuns(t *testing.T) {
	unit, err := os.ReadFile(filepath.Join(deploy, "firn.service"))
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(unit), "ExecStart=/usr/local/bin/firn ")
	line, _, _ = strings.Cut(line, "\n")
	folder := t.TempDir()
	inFolder := strings.NewReplacer("/etc/firn/", folder+"/", "/var/lib/firn", folder+"/state", "0.0.0.0:7070", "127.0.0.1:0", "0.0.0.0:7071", "127.0.0.1:0", "0.0.0.0:7072", "127.0.0.1:0")
	certificate(t, folder+"/cert.pem", folder+"/key.pem")
	for _, s := range snippets(t, "docs/deploy.md", "## systemd") {
		if _, making, ok := strings.Cut(s.text, "sudo -u firn firn "); ok {
			making, _, _ = strings.Cut(making, "\n")
			if out, err := exec.CommandContext(t.Context(), "firn", strings.Fields(inFolder.Replace(making))...).CombinedOutput(); err != nil {
				t.Fatalf("firn %s: %v: %s", making, err, out)
			}
		}
		if s.language == "yaml" {
			if err := os.WriteFile(filepath.Join(folder, "firn.yaml"), []byte(inFolder.Replace(s.text)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(context.Background(), "firn", strings.Fields(inFolder.Replace(line))...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	serveUntilTheEnd(t, cmd)
	if _, err := os.Stat(filepath.Join(folder, "state", "firn.lock")); err != nil {
		t.Error(err)
	}
}
