package access

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

// CallerOf returns the caller of an HTTP request, for every protocol over HTTP.
func (b *Book) CallerOf(r *http.Request) (*Caller, error) {
	c, err := OfRequest(r)
	if err != nil {
		return nil, err
	}
	return b.Identify(c)
}

// OfRequest returns the credentials of an HTTP request, for every protocol over HTTP: the
// Bearer token, the verified certificate, and whether the request comes from this machine.
func OfRequest(r *http.Request) (Credentials, error) {
	c := Credentials{Foreign: foreignPage(r), From: r.RemoteAddr, Client: share.In(r.Context())}
	c.Local = !c.Foreign && local(r)
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		c.Certificate = r.TLS.VerifiedChains[0][0]
	}
	header := r.Header["Authorization"]
	if len(header) == 0 {
		return c, nil
	}
	scheme, secret, _ := strings.Cut(header[0], " ")
	c.Token = strings.TrimSpace(secret)
	if len(header) > 1 || !strings.EqualFold(scheme, "Bearer") || c.Token == "" {
		return c, failure.New(http.StatusUnauthorized, "unauthorized", "write Authorization: Bearer TOKEN, once")
	}
	return c, nil
}

// Local reports whether both ends of a connection are on this machine's loopback.
func Local(local, remote net.Addr) bool { return loopback(local) && loopback(remote) }

func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// forwarded are the headers that proxies add.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Server", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Via"}

// Identifies reports whether a header, beside Host and Authorization, has a part in who the caller is. Without it and for
// the same values of those two, requests of one connection have the same caller.
func Identifies(header string) bool {
	for _, name := range forwarded {
		if len(name) == len(header) && strings.EqualFold(name, header) {
			return true
		}
	}
	return strings.EqualFold(header, "Sec-Fetch-Site") || strings.EqualFold(header, "Origin")
}

// local reports whether a request comes from this machine, as far as the server can know, unless it is of a foreign page.
// Through a proxy on this machine every client would look local; its headers, or a Host that
// does not name this machine, show that there is one. The check of Host also stops web pages
// whose domain resolves to 127.0.0.1.
func local(r *http.Request) bool {
	here, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !loopback(here) {
		return false
	}
	if !strings.HasPrefix(r.RemoteAddr, "127.0.0.1:") { // the usual case; only the server sets RemoteAddr
		there, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !there.Addr().Unmap().IsLoopback() {
			return false
		}
	}
	if !loopbackHost(r.Host) {
		return false
	}
	for _, name := range forwarded {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	return true
}

// foreignPage reports whether a browser sends the request for a page of another origin. The
// page may not read the answer, but the request would have its effect: any page could use up
// ids or make namespaces on the machine of its visitors.
func foreignPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none": // the server's own page, or an address that the user typed
		return false
	case "":
	default:
		return true
	}
	origin := r.Header.Get("Origin") // older browsers send only this, and not with GET
	if origin == "" {
		return false
	}
	from, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(from.Host, r.Host)
}

// loopbackHost reports whether a Host header names this machine.
func loopbackHost(host string) bool {
	if bare, port, _ := strings.Cut(host, ":"); (bare == "127.0.0.1" || bare == "localhost") && strings.Trim(port, "0123456789") == "" {
		return true // the usual case
	}
	name := host
	if bare, _, err := net.SplitHostPort(host); err == nil {
		name = bare
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}
