// Package hosturl reads the URLs of stores that several hosts may serve, which net/url does not accept,
// and never repeats a password. It is for authors of stores: [Parse] reads the URL, and the store asks
// the result for hosts, credentials, TLS and settings. Do not use it for URLs of the web: they have one host, and
// more forms than this.
//
//	SCHEME://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/PATH][?NAME=VALUE[&...]]
package hosturl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ErrURL means that a text cannot be the URL of a store, whatever servers exist. [URL.Err] matches it.
var ErrURL = errors.New("not a store URL")

// mistakes match ErrURL, whose text they do not repeat.
type mistakes struct{ error }

func (mistakes) Is(target error) bool { return target == ErrURL }
func (m mistakes) Unwrap() error      { return m.error }

// A URL is a parsed store URL. Its methods for settings remove each setting they read and collect
// mistakes; [URL.Err] returns these, and the settings that remain unread.
type URL struct {
	Scheme         string
	User, Password string
	Hosts          []string // each HOST:PORT
	Path           string   // without the slash before it

	settings map[string][]string
	known    []string
	errs     []error
	other    bool // the scheme is another: nothing else was read
}

// Parse reads a URL with one of the schemes. Hosts without a port get defaultPort. Only the URL's Err
// returns errors, so that it reports all mistakes at once.
func Parse(text, defaultPort string, schemes ...string) *URL {
	scheme, rest, _ := strings.Cut(text, "://")
	u := &URL{Scheme: scheme}
	if !slices.Contains(schemes, scheme) {
		example := Redact(text)
		if strings.ContainsAny(example, "…/") || strings.Contains(text, "://") || !strings.Contains(text, ":") {
			example = net.JoinHostPort("127.0.0.1", defaultPort)
		}
		u.Fail(fmt.Errorf("%q: a URL begins with %s://, as in %s://%s", Redact(text), strings.Join(schemes, ":// or "), schemes[0], example))
		u.other = true
		return u
	}
	rest, query, _ := strings.Cut(rest, "?")
	// At the last @, since a password may have been left unescaped.
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		u.login(rest[:i])
		rest = rest[i+1:]
	}
	hosts, path, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		u.host(host, defaultPort)
	}
	var err error
	if u.Path, err = url.PathUnescape(path); err != nil {
		u.Fail(errors.New("a % in what follows the host is not followed by two hexadecimal digits"))
	}
	if u.settings, err = url.ParseQuery(query); err != nil {
		u.Fail(errors.New("the settings after ? are NAME=VALUE, joined by & and escaped as in any URL"))
	}
	return u
}

func (u *URL) login(text string) {
	user, password, ok := strings.Cut(text, ":")
	var err1, err2 error
	u.User, err1 = url.PathUnescape(user)
	u.Password, err2 = url.PathUnescape(password)
	if !ok && err1 == nil && !strings.ContainsAny(text, "@/") {
		u.Fail(errors.New("the user before @ has no password: write USER:PASSWORD@, or USER:@ without one; a password alone is :PASSWORD@"))
		u.User = ""
		return
	}
	if !ok || err1 != nil || err2 != nil || strings.ContainsAny(text, "@/") {
		u.Fail(errors.New("what stands before @ is USER:PASSWORD or :PASSWORD, with the characters @ : / ? # % escaped as in %40"))
	}
}

func (u *URL) host(host, defaultPort string) {
	name, port, err := net.SplitHostPort(host)
	switch {
	case host == "":
		u.Fail(fmt.Errorf("it names no host, as in %s://127.0.0.1:%s", u.Scheme, defaultPort))
		return
	case strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]"):
		name, port = host[1:len(host)-1], defaultPort
	case !strings.Contains(host, ":"):
		name, port = host, defaultPort
	case err != nil || name == "":
		u.Fail(errors.New("a host is HOST or HOST:PORT, an IPv6 address in brackets")) // what it is instead may be a password
		return
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		u.Fail(fmt.Errorf("the port of host %q is not a number from 1 to 65535", name))
		return
	}
	u.Hosts = append(u.Hosts, net.JoinHostPort(name, port))
}

// Levels returns the path of a store that keeps all its keys below it. An extra slash is a mistake:
// /shop and /shop/ would be two stores that look like one.
func (u *URL) Levels() string {
	if u.Path != "" && strings.Contains("/"+u.Path+"/", "//") {
		u.Fail(fmt.Errorf("path /%s has a level without a name, or begins or ends with a slash too many", u.Path))
	}
	return u.Path
}

// Fail adds a mistake. A nil error adds nothing, and so does any other if the scheme is not one of Parse's.
func (u *URL) Fail(err error) {
	if err != nil && !u.other {
		u.errs = append(u.errs, err)
	}
}

// Setting removes and returns a setting, "" if it is missing.
func (u *URL) Setting(name string) string {
	u.known = append(u.known, name)
	values, ok := u.settings[name]
	delete(u.settings, name)
	if len(values) == 1 && values[0] != "" {
		return values[0]
	}
	if ok {
		u.Fail(fmt.Errorf("setting %s needs one value", name))
	}
	return ""
}

// Bool removes and returns a setting that is true or false; false if it is missing.
func (u *URL) Bool(name string) bool {
	text := u.Setting(name)
	if text == "" {
		return false
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		u.Fail(fmt.Errorf("%s=%s is neither true nor false", name, text))
	}
	return value
}

// Int removes and returns a setting that is a whole number from least to most; not ok if it is missing.
func (u *URL) Int(name string, least, most int) (value int, ok bool) {
	text := u.Setting(name)
	if text == "" {
		return 0, false
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < least || value > most {
		u.Fail(fmt.Errorf("%s=%s is not a number from %d to %d", name, text, least, most))
	}
	return value, true
}

// TLS removes the settings tls_ca, tls_cert, tls_key and tls_server_name, and returns what makes the configuration of a
// handshake. Without TLS they are mistakes, and it returns nil. Each handshake reads the files again, since they may have been
// renewed; files that cannot be read are as they were before.
func (u *URL) TLS(spoken bool, how string) func() *tls.Config {
	ca, cert, key, name := u.Setting("tls_ca"), u.Setting("tls_cert"), u.Setting("tls_key"), u.Setting("tls_server_name")
	if !spoken {
		if ca != "" || cert != "" || key != "" || name != "" {
			u.Fail(fmt.Errorf("settings that begin with tls_ are for %s", how))
		}
		return nil
	}
	latest := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	read := func() error {
		var errs []error
		if ca != "" {
			if roots, err := authorities(ca); err != nil {
				errs = append(errs, fmt.Errorf("tls_ca: %w", err))
			} else {
				latest.RootCAs = roots
			}
		}
		if cert != "" || key != "" {
			if pair, err := tls.LoadX509KeyPair(cert, key); err != nil {
				errs = append(errs, fmt.Errorf("tls_cert and tls_key: %w", err))
			} else {
				// It is sent whatever authorities the server names: it may accept others too.
				latest.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
			}
		}
		return errors.Join(errs...)
	}
	u.Fail(read())
	var mu sync.Mutex
	return func() *tls.Config {
		mu.Lock()
		defer mu.Unlock()
		_ = read() // a file may be half written
		return latest.Clone()
	}
}

func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM form", file)
	}
	return roots, nil
}

// Err returns all mistakes, including settings that no method read. They match [ErrURL].
func (u *URL) Err() error {
	errs := u.errs
	slices.Sort(u.known)
	for _, name := range slices.Sorted(maps.Keys(u.settings)) {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			name = "of that name" // it may be what follows a ? in a password
		}
		instead := "it takes no settings"
		if len(u.known) > 0 {
			instead = "those are " + strings.Join(slices.Compact(u.known), ", ")
		}
		errs = append(errs, fmt.Errorf("there is no setting %s: %s", name, instead))
	}
	if len(errs) == 0 {
		return nil
	}
	return mistakes{errors.Join(errs...)}
}

// Redact returns a URL for people to read, without anything that may be a password. It does not
// parse: an unescaped password, the common mistake, must not slip through either. So it drops
// everything before the last @, and everything after the first sign of a query or a setting.
func Redact(text string) string {
	scheme, rest, ok := strings.Cut(text, ":")
	start := scheme + ":"
	if !ok || strings.ContainsAny(scheme, "@=?&; ") {
		start, rest = "", text // no scheme
	}
	if strings.HasPrefix(rest, "//") {
		start, rest = start+"//", rest[2:]
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		start, rest = start+"…@", rest[i+1:]
	} else if i := strings.IndexByte(rest, ':'); i >= 0 && strings.TrimLeft(rest[i+1:], "0123456789") == rest[i+1:] {
		return start + "…" // not a port after the colon: the @ is missing
	}
	if i := strings.IndexAny(rest, "?=&;# "); i >= 0 {
		rest = rest[:i+1] + "…"
	}
	return start + rest
}
