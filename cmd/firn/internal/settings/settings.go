// Package settings reads a server's configuration file and turns it into settings of the library. The kinds of
// ids are one table here ([Kind]), with what their settings name: keys of veils, time zones, ids of more than
// 64 bits.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/firn-id/firn"
)

// Config is the configuration of a server, as in its file.
type Config struct {
	Store      string               `yaml:"store" unset:"a folder of your user" example:"redis://10.0.0.5:6379/0" help:"where workers, counters and fences are kept: [stores.md](stores.md)"`
	Listen     Listen               `yaml:"listen" help:"the addresses"`
	Namespaces map[string]Namespace `yaml:"namespaces" unset:"made on first use" example:"{orders: {kind: segment}}" help:"what ids are issued, by name; {} means the same as leaving it out"`
	Limits     Limits               `yaml:"limits" help:"what one request and one caller may have: [limits.md](limits.md)"`
	Tokens     []Token              `yaml:"tokens" unset:"without tokens and anonymous, only callers on this machine are served" help:"the callers: [security.md](security.md)"` // empty and not nil: none, on purpose
	Anonymous  []string             `yaml:"anonymous" example:"[\"public-*\"]" help:"namespaces that need no token, by name or pattern; clients with a token may use them too"`

	AnonymousMetrics bool  `yaml:"anonymous_metrics" default:"false" help:"/metrics needs no token"`
	TLS              *TLS  `yaml:"tls" unset:"no encryption" help:"with what connections are encrypted"`
	Audit            Audit `yaml:"audit" help:"where denied requests and administrative actions are recorded"`
	CosID            bool  `yaml:"cosid" default:"false" help:"serve CosId's clients too, as its proxy server does: [migrate-cosid.md](migrate-cosid.md)"`

	path  string // of the file
	lines *lines // of its values; nil without a file
}

// Listen has the addresses to listen on.
type Listen struct {
	HTTP string `yaml:"http" default:"127.0.0.1:7070" flag:"http" help:"HTTP, gRPC-Web and Connect; gRPC too"`
	RESP string `yaml:"resp" default:"127.0.0.1:7071" flag:"resp" help:"the Redis protocol; off disables it"`
	GRPC string `yaml:"grpc" default:"127.0.0.1:7072" flag:"grpc" help:"gRPC, which is faster here than on http; off disables it"`
}

// Off disables a listener.
const Off = "off"

// DefaultPool is the pool of generators that name no pool.
const DefaultPool = "default"

// A Section is a part of the configuration file.
type Section struct {
	Key      string // of the section; empty for the top level
	Form     string // its syntax, with %s for its keys
	Settings []Setting
}

// Sections returns the sections of the configuration file except the namespaces, whose settings depend on their kind.
func Sections() []Section {
	return []Section{
		{"", "%s", declared(reflect.TypeFor[Config]())},
		{"listen", "{%s}", declared(reflect.TypeFor[Listen]())},
		{"limits", "{%s}", declared(reflect.TypeFor[Limits]())},
		{"tokens", "[{%s}]", declared(reflect.TypeFor[Token]())},
		{"tls", "{%s}", declared(reflect.TypeFor[TLS]())},
		{"audit", "{%s}", declared(reflect.TypeFor[Audit]())},
		{"veil", "{%s}", declared(reflect.TypeFor[Veil]())},
	}
}

// Read reads and checks a file. It returns all mistakes at once, each with file, line, key, value and what is allowed.
func Read(path string) (Config, error) {
	source, err := ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	return Parse(path, source)
}

// Parse is [Read] for the content of a file.
func Parse(path string, source []byte) (Config, error) {
	var given any
	cfg := Config{path: path, lines: &lines{source: source}}
	if err := checkSize(source); err != nil {
		return Config{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	if err := unmarshal(source, &given); err != nil {
		return Config{}, cfg.unreadable(err)
	}
	if keys, _ := given.(map[string]any); len(keys) == 0 {
		return Config{}, fmt.Errorf("configuration %s: %w", path, errNothing)
	}
	mistakes := found{cfg: &cfg, misread: map[string]bool{}}
	report := mistakes.report
	readable := withoutMisread(given, reflect.TypeFor[Config](), Setting{}, nil, mistakes.unread)
	if err := cfg.decode(source, readable, len(mistakes.misread) > 0); err != nil {
		return Config{}, errors.Join(mistakes.join(), err)
	}
	if cfg.Listen.HTTP == Off {
		report(errors.New("HTTP cannot be turned off, since health and metrics are served there: give an address, such as 127.0.0.1:7070"), "listen", "http")
	} else if cfg.Listen.HTTP != "" {
		report(CheckAddress(cfg.Listen.HTTP), "listen", "http")
	}
	for key, address := range map[string]string{"resp": cfg.Listen.RESP, "grpc": cfg.Listen.GRPC} {
		if address != "" && address != Off {
			report(CheckAddress(address), "listen", key)
		}
	}
	cfg.Limits.check(cfg.Namespaces, report)
	cfg.checkAccess(report)
	cfg.TLS.check(report)
	if one, err := os.Stat(cfg.Audit.File); err == nil {
		if other, err := os.Stat(path); err == nil && os.SameFile(one, other) {
			report(errors.New("the audit log would be written into the configuration: name another file"), "audit", "file")
		}
	}
	pools := poolmates{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Namespaces)) {
		report(CheckName(name), "namespaces", name)
		ns := cfg.Namespaces[name]
		of := ns.Mistakes()
		for _, key := range slices.Sorted(maps.Keys(of)) {
			report(of[key], slices.DeleteFunc([]string{"namespaces", name, key}, func(s string) bool { return s == "" })...)
		}
		if err := pools.agree(name, ns); err != nil && len(mistakes.misread) == 0 {
			report(err, "namespaces", name, "pool")
		}
	}
	return cfg, mistakes.join()
}

// decode reads the file into c. If the file has mistakes, it reads only what is readable, so that the mistakes in the
// rest are reported too.
func (c *Config) decode(source []byte, readable any, mistakes bool) error {
	if !mistakes {
		if err := unmarshal(source, c, yaml.Strict()); err != nil {
			return c.unreadable(err)
		}
		return nil
	}
	rest, err := yaml.Marshal(readable)
	if err != nil {
		return c.unreadable(err)
	}
	return unmarshal(rest, c)
}

// unreadable says where the YAML library met a mistake, and which. It shows nothing of the text, which may have a password or be long:
// the library quotes what its messages repeat.
func (c *Config) unreadable(err error) error {
	in, ok := errors.AsType[yaml.Error](err)
	if !ok {
		return fmt.Errorf("configuration %s: %w", c.path, err)
	}
	place, line := "", 0
	if t := in.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
		place = fmt.Sprintf("line %d, column %d: ", t.Position.Line, t.Position.Column)
	}
	help := ""
	switch _, syntax := errors.AsType[*yaml.SyntaxError](err); {
	case !syntax:
	case strings.Contains(in.GetMessage(), "already defined"):
		help = "; write each name once"
	case bareTemplate().Match(c.lines.text(line)):
		help = "; " + quoteTemplate
	default:
		help = "; indent by spaces, not tabs, and lines of one block by the same number"
	}
	return fmt.Errorf("configuration %s: %sinvalid YAML: %s%s", c.path, place, quoted().ReplaceAllString(in.GetMessage(), "…"), help)
}

// quoted matches what %q writes. It is compiled on first use.
var quoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"(?:[^"\\]|\\.)*"`) })

// bareTemplate matches a line with a template that has braces and no quotes. It is compiled on first use.
var bareTemplate = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\btemplate:\s*[^"'\s][^"']*\{|\btemplate:\s*\{`) })

// quoteTemplate says how a template is written: YAML reads its braces as entries.
const quoteTemplate = `put the template in quotes, as in template: "ORD{yyyyMMdd}-{n:6}"`

// errYAML reports a text at which the YAML library panicked.
var errYAML = errors.New("this cannot be read as YAML")

// errNothing refuses a file without settings. Most likely it was not completely written yet. As a configuration it
// would mean another store, and namespaces of any name for local callers.
var errNothing = errors.New("there is no setting in it: it may not have been written yet; " +
	"write one at least, as store: URL or namespaces: {NAME: {}}, or start the server without a configuration")

// errSecond refuses a file with a second YAML document, whose settings would be ignored.
var errSecond = errors.New("there are settings after a line that begins with ---, a second document in YAML: " +
	"only one is read; remove the line, or the settings after it")

// unmarshal parses one YAML document. The library panics at some invalid texts. A server that follows its file must
// not end because of that, so a panic becomes an error.
func unmarshal(source []byte, into any, options ...yaml.DecodeOption) (err error) {
	defer func() {
		if recover() != nil {
			err = errYAML
		}
	}()
	documents := yaml.NewDecoder(bytes.NewReader(source), options...)
	if err := documents.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return nil // an empty file
		}
		return err
	}
	var second any
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) {
		return errSecond // or text that is not YAML
	}
	return nil
}

// CheckAddress refuses an address without a port, or with one that does not exist: the system would choose a port. The empty address, as of a variable
// that is not set, would even mean all interfaces.
func CheckAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return firn.NewSyntaxError("address to listen on", address, "write HOST:PORT, as in 127.0.0.1:7070, or :7070 for all interfaces; a port is at most 65535")
	}
	return nil
}

// KeyFiles returns the files with veil keys that the configuration names.
func (c Config) KeyFiles() []string {
	files := map[string]bool{}
	for _, ns := range c.Namespaces {
		if ns.Veil != nil && ns.Veil.KeyFile != "" {
			files[ns.Veil.KeyFile] = true
		}
	}
	return slices.Sorted(maps.Keys(files))
}
