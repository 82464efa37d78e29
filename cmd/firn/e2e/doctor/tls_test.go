package doctor

import (
	"bufio"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/firn-id/firn/store/storetest/servers"
)

func init() {
	cases["certificates"] = func(d *doctor) {
		url := "file:" + filepath.Join(d.TempDir(), "firn")
		d.firn("store", "make", url)
		small, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // what is tested
		d.must(err)
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		d.must(err)
		now := time.Now()
		leaf := x509.Certificate{NotAfter: now.Add(time.Hour), DNSNames: []string{"localhost"}}
		nameless, ended, client := leaf, leaf, leaf
		nameless.DNSNames = nil
		ended.NotAfter, ended.IsCA = now.Add(-time.Minute), true
		client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		good := d.certificate(leaf, key)

		d.finds("doubtful", "tls", "the certificate expires soon", d.serving(url, good, key, "", "")...)
		d.finds("doubtful", "tls", "put a new one in its place: the server notices", d.serving(url, good, key, "", "")...)
		d.finds("doubtful", "tls", "has no name in its subjectAltName", d.serving(url, d.certificate(nameless, key), key, "", "")...)
		d.finds("doubtful", "tls", "has 1024 bits", d.serving(url, d.certificate(leaf, small), small, "", "")...)
		d.finds("doubtful", "tls", "do not lead from the first to the last", d.serving(url, good+d.certificate(ended, key), key, "", "")...)
		d.finds("doubtful", "tls", "is not an authority's", d.serving(url, good, key, good, "")...)
		d.finds("doubtful", "tls", "the certificates that it issued are refused", d.serving(url, good, key, d.certificate(ended, key), "")...)
		d.refuses("is not for servers, so clients refuse it", d.serving(url, d.certificate(client, key), key, "", "")...)
		damaged := good[:len(good)/2] + "\n"
		d.refuses("cert.pem: block 1 is damaged or cut off", d.serving(url, damaged+good, key, "", "")...)
		d.refuses("key.pem: block 1 is damaged or cut off", d.serving(url, good, key, "", damaged)...)
		d.refuses("ca.pem: block 2 is damaged or cut off", d.serving(url, good, key, good+damaged+good, "")...)
	}
	// Only a server that runs says it: at a start it is an error.
	cases["a certificate that expires in force"] = func(d *doctor) {
		url := "file:" + filepath.Join(d.TempDir(), "firn")
		d.firn("store", "make", url)
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		d.must(err)
		itself, err := os.Executable()
		d.must(err)
		cert := d.certificate(x509.Certificate{NotAfter: time.Now().Add(5 * time.Second), DNSNames: []string{"localhost"}}, key)
		server := exec.Command(itself, append([]string{"serve", "--http", servers.Nowhere(d), "--grpc", "off", "--resp", "off"}, d.serving(url, cert, key, "", "")...)...)
		server.Env = append(server.Environ(), command+"=1")
		log, err := server.StderrPipe()
		d.must(err)
		d.must(server.Start())
		end := time.AfterFunc(40*time.Second, func() { _ = server.Process.Kill() }) // it may have ended
		defer end.Stop()
		var said strings.Builder
		for lines := bufio.NewScanner(log); !strings.Contains(said.String(), "has expired") && lines.Scan(); {
			fmt.Fprintln(&said, lines.Text())
		}
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()         // it was killed
		if !strings.Contains(said.String(), `level=ERROR msg="the certificate has expired: clients refuse it"`) {
			d.Errorf("firn serve logs %s", said.String())
		}
		d.all.add(said.String())
	}
}

// serving returns the arguments for a configuration with these files; damaged precedes the key.
func (d *doctor) serving(url, cert string, key crypto.Signer, ca, damaged string) (args []string) {
	d.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	d.must(err)
	dir := d.TempDir()
	d.must(os.WriteFile(filepath.Join(dir, "cert.pem"), []byte(cert), 0o600))
	d.must(os.WriteFile(filepath.Join(dir, "key.pem"), append([]byte(damaged), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...), 0o600))
	d.must(os.WriteFile(filepath.Join(dir, "ca.pem"), []byte(ca), 0o600))
	set := fmt.Sprintf("cert: %s/cert.pem, key: %s/key.pem", dir, dir)
	if ca != "" {
		set += fmt.Sprintf(", client_ca: %s/ca.pem", dir)
	}
	return []string{"--store", url, "--config", d.file("anonymous: ['*']\ntls: {" + set + "}")}
}

// certificate returns a certificate that its own key has signed, in PEM.
func (d *doctor) certificate(c x509.Certificate, key crypto.Signer) string {
	d.Helper()
	c.SerialNumber, c.Subject, c.NotBefore, c.BasicConstraintsValid = big.NewInt(1), pkix.Name{CommonName: "localhost"}, time.Now().Add(-time.Hour), true
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, key.Public(), key)
	d.must(err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
