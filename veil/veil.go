package veil

import (
	"bytes"
	"cmp"
	"crypto/aes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/config"
	"github.com/firn-id/firn/store"
)

const (
	// DefaultBits is the width of veils if [Config.Bits] is 0: that of a [firn.ID].
	DefaultBits = 63
	// maxVersionBits bounds [Config.VersionBits].
	maxVersionBits = 8
	// maxNamespace bounds [Config.Namespace], in bytes. Only New takes longer for a long one.
	maxNamespace = 255
)

// ErrVersion is matched by the error for a veil whose version bits match no key of the
// Cipher: the key is retired or not yet configured, or the number is not a veil.
var ErrVersion = errors.New("veil: no key of this version")

// Config configures [New]. Only Keys is required.
type Config struct {
	// Keys has at least one key; versions must differ. The key with the greatest version
	// veils, all keys unveil. Give a new key to every process before any process veils with
	// it: a process without the key cannot read the veils.
	Keys []Key

	// Bits is the width of veils: 63 for a [firn.ID], 53 for numbers that
	// JavaScript holds exactly, 64 for unsigned columns (see
	// [Cipher.VeilUint64]), or any other from 20 to 64. Default: 63. Ids must fit
	// into Bits less VersionBits. With a short width an onlooker can collect a large part
	// of all veils.
	Bits int

	// VersionBits is how many of the top bits of a veil carry the version of its
	// key, modulo 2^VersionBits: 0 to 8, with at least 20 bits left for the id. It must
	// be above 0 if there is more than one key, and the versions must differ in these
	// bits: retire the oldest key before a new version has the same bits. The bits are
	// visible: an onlooker sees which veils have the same key. Default: 0, all bits are
	// the id's.
	VersionBits int

	// Namespace makes the veils of one kind of id differ from those of another kind under
	// the same key, such as "orders". It has up to 255 bytes, must never change and need not
	// be secret. It is the tweak of FF1. Default: empty.
	Namespace string
}

// A Cipher veils and unveils ids. It may be used concurrently and never waits. It allocates
// memory for errors only.
type Cipher struct {
	bits, versionBits int
	namespace         string
	versions          []string // newest first
	newest            *permutation
	mark              uint64 // the newest version's bits, in place
	// byVersion is indexed by a veil's version bits; nil if there is no key.
	byVersion []*permutation
	form      store.Form
}

// New returns a cipher. The error names every mistake in cfg. It matches [firn.ErrRange] if
// a number or the namespace is out of range.
func New(cfg Config) (*Cipher, error) {
	cfg.Bits = cmp.Or(cfg.Bits, DefaultBits)
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("veil: %w", err)
	}
	keys := slices.SortedFunc(slices.Values(cfg.Keys), func(a, b Key) int { return cmp.Compare(b.version, a.version) })
	c := &Cipher{
		bits: cfg.Bits, versionBits: cfg.VersionBits, namespace: cfg.Namespace,
		byVersion: make([]*permutation, 1<<cfg.VersionBits),
	}
	c.form = store.Form{Name: fmt.Sprintf("veil of %d bits, %d of them for the version", c.bits, c.versionBits), Keys: map[string]string{}}
	for _, key := range keys {
		block, err := aes.NewCipher(key.material())
		if err != nil {
			return nil, keyError("%v: %w", key, err)
		}
		p := newPermutation(block, c.idBits(), []byte(cfg.Namespace))
		tag := key.version & (len(c.byVersion) - 1)
		c.byVersion[tag] = &p
		c.form.Keys[strconv.Itoa(tag)] = fingerprint(key, cfg.Namespace)
		c.versions = append(c.versions, strconv.Itoa(key.version))
	}
	tag := keys[0].version & (len(c.byVersion) - 1)
	c.newest = c.byVersion[tag]
	c.mark = uint64(tag) << c.idBits() // 0 without version bits, also where the shift is 64
	return c, nil
}

// fingerprint identifies a key and a namespace, and reveals no more of the key.
func fingerprint(key Key, namespace string) string {
	h := hmac.New(sha256.New, key.material())
	h.Write([]byte("firn veil of namespace " + namespace))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func (cfg *Config) check() error {
	errs := []error{
		config.Check("bits", cfg.Bits, leastBits, mostBits, "63 for an id, 53 for JavaScript; fewer than 20 can be guessed"),
		config.Check("version bits", cfg.VersionBits, 0, max(0, min(maxVersionBits, cfg.Bits-leastBits)),
			fmt.Sprintf("at least %[2]d of the %[1]d bits are the id's", cfg.Bits, leastBits)),
		config.Check("length of the namespace", len(cfg.Namespace), 0, maxNamespace, "in bytes"),
	}
	return errors.Join(append(errs, cfg.checkKeys()...)...)
}

func (cfg *Config) checkKeys() (errs []error) {
	if len(cfg.Keys) == 0 {
		return []error{keyError("there is no key, at least one is required")}
	}
	for i, key := range cfg.Keys {
		if key.bits == 0 {
			errs = append(errs, keyError("Keys[%d] is the zero Key: NewKey and ParseKeys make keys", i))
			continue
		}
		for _, other := range cfg.Keys[:i] {
			switch {
			case other.bits == 0:
			case other.version == key.version:
				errs = append(errs, keyError("two keys have version %d", key.version))
			case bytes.Equal(other.material(), key.material()):
				errs = append(errs, keyError("versions %d and %d have the same key", other.version, key.version))
			case cfg.VersionBits > 0 && cfg.VersionBits <= maxVersionBits && (other.version^key.version)&(1<<cfg.VersionBits-1) == 0:
				errs = append(errs, keyError("versions %d and %d have the same %d version bits: drop the older key, or "+
					"use more bits from the start", other.version, key.version, cfg.VersionBits))
			}
		}
	}
	if len(cfg.Keys) > 1 && cfg.VersionBits == 0 {
		errs = append(errs, keyError("%d keys require version bits, which identify the key of a veil: "+
			"set some (in Go Config.VersionBits, for firn veil --version-bits), or use each key by itself", len(cfg.Keys)))
	}
	return errs
}

// idBits is the width of the ids, and of the permutation.
func (c *Cipher) idBits() int { return c.bits - c.versionBits }

// Veil returns the id's veil under the newest key. The error is a *[firn.RangeError] for an
// id that is negative or too wide. With a width of 64 bits half of the veils do
// not fit a [firn.ID], so Veil refuses every id: use [Cipher.VeilUint64].
func (c *Cipher) Veil(id firn.ID) (firn.ID, error) {
	if id < 0 || c.bits == mostBits {
		return 0, c.refuse("id", id)
	}
	veiled, err := c.VeilUint64(uint64(id))
	return firn.ID(veiled), err
}

// Unveil returns the id of a veil. The error is a *[firn.RangeError] for a number that is
// negative or wider than veils, and for any number with a width of 64 bits. It matches
// [ErrVersion] if the Cipher does not have the veil's key. Any other number unveils to
// some id: see the package comment.
func (c *Cipher) Unveil(veiled firn.ID) (firn.ID, error) {
	if veiled < 0 || c.bits == mostBits {
		return 0, c.refuse("veiled id", veiled)
	}
	id, err := c.UnveilUint64(uint64(veiled))
	return firn.ID(id), err
}

// VeilUint64 is Veil for unsigned numbers and all widths.
func (c *Cipher) VeilUint64(id uint64) (uint64, error) {
	if width := c.idBits(); id>>width != 0 { // a shift by 64 gives 0
		return 0, c.tooWide("id", id, width)
	}
	return c.mark | c.newest.veil(id), nil
}

// UnveilUint64 is Unveil for unsigned numbers and all widths.
func (c *Cipher) UnveilUint64(veiled uint64) (uint64, error) {
	if veiled>>c.bits != 0 {
		return 0, c.tooWide("veiled id", veiled, c.bits)
	}
	p, tag := c.newest, veiled>>c.idBits()
	if c.versionBits > 0 {
		p = c.byVersion[tag]
	}
	if p == nil {
		return 0, fmt.Errorf("%w: veiled id %d has the version bits of version %s; known here: %s",
			ErrVersion, veiled, c.anyOf(tag), c.keys())
	}
	return p.unveil(veiled & (1<<c.idBits() - 1)), nil
}

// refuse returns the error for an id that is negative or has a width of 64 bits.
func (c *Cipher) refuse(what string, id firn.ID) error {
	if id < 0 {
		return firn.NewRangeError(what, int64(id), 0, int64(c.maxID()), c.widths())
	}
	return &firn.RangeError{What: "width for a firn.ID", Value: "64 bits", Min: "20", Max: "63",
		Where: "use VeilUint64 and UnveilUint64 for 64 bits"}
}

func (c *Cipher) tooWide(what string, n uint64, width int) error {
	return &firn.RangeError{
		What: what, Value: strconv.FormatUint(n, 10), Min: "0",
		Max: strconv.FormatUint(1<<width-1, 10), Where: c.widths(),
	}
}

// widths describes the widths that set the limits.
func (c *Cipher) widths() string {
	if c.versionBits == 0 {
		return fmt.Sprintf("veils have %d bits", c.bits)
	}
	return fmt.Sprintf("veils have %d bits, %d of them for the key's version", c.bits, c.versionBits)
}

// anyOf lists the versions that a tag may mean.
func (c *Cipher) anyOf(tag uint64) string {
	step := uint64(len(c.byVersion))
	return fmt.Sprintf("%d, %d, %d, …", tag, tag+step, tag+2*step)
}

// keys lists the versions of the keys, newest first.
func (c *Cipher) keys() string {
	if len(c.versions) == 1 {
		return "key " + c.versions[0]
	}
	return "keys " + strings.Join(c.versions, ", ")
}

// Repeats reports whether c, which replaces the cipher before, may make veils equal to
// those that before has made of other ids: some keys differ but have the same version bits,
// or there are no version bits. If before is nil, c replaces none.
func (c *Cipher) Repeats(before *Cipher) bool {
	if before == nil {
		return false
	}
	if c.bits != before.bits || c.versionBits != before.versionBits {
		return true
	}
	was := before.byVersion[c.mark>>c.idBits()]
	return was != nil && !was.equal(c.newest)
}

// Form returns the form of veiled ids, for the counter that makes the ids: Config.Form of package segment or
// sequence. The store then keeps a fingerprint of each key under its version bits, and
// refuses a process with another key for them, a later version too.
func (c *Cipher) Form() store.Form {
	return store.Form{Name: c.form.Name, Keys: maps.Clone(c.form.Keys)}
}

// maxID returns the greatest id that can be veiled: firn.MaxID with a width of 64 bits.
func (c *Cipher) maxID() firn.ID { return firn.ID(min(1<<c.idBits()-1, uint64(firn.MaxID))) }

// String describes the cipher for logs, without its keys:
// `veil of 63 bits, 2 of them for the version, keys 2, 1, namespace "orders"`.
func (c *Cipher) String() string {
	s := fmt.Sprintf("veil of %d bits", c.bits)
	if c.versionBits > 0 {
		s += fmt.Sprintf(", %d of them for the version", c.versionBits)
	}
	return s + ", " + c.keys() + fmt.Sprintf(", namespace %q", c.namespace)
}
