package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthOverTLSTrustsTheServerHere(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			w.Write([]byte("ok\n"))
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		w.Write([]byte("not_ready\n"))
	}))
	defer s.Close()
	at := s.Listener.Addr().String()
	if said, err := askHealth(t.Context(), true, at, "/livez"); err != nil || said != "ok" {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := askHealth(t.Context(), true, at, "/readyz"); err == nil || !strings.HasSuffix(err.Error(), "503 Service Unavailable: not_ready") {
		t.Errorf("not ready: %v", err)
	}
	if _, err := askHealth(t.Context(), false, at, "/livez"); err == nil {
		t.Error("TLS is read from the configuration")
	}
}

func TestTheAddressFromHere(t *testing.T) {
	for listen, want := range map[string]string{
		":7070": "localhost:7070", "0.0.0.0:7070": "localhost:7070", "[::]:7070": "localhost:7070",
		"127.0.0.1:7070": "127.0.0.1:7070", "10.1.2.3:80": "10.1.2.3:80", "host:80": "host:80",
	} {
		if got := fromHere(listen, "localhost"); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}
