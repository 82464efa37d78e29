package veil

import (
	"bytes"
	"cmp"
	"crypto/aes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/firn-id/firn"
)

const (
	// DefaultBits is the width of veils when [Config.Bits] is 0: that of a [firn.ID].
	DefaultBits = 63
	// maxVersionBits bounds [Config.VersionBits].
	maxVersionBits = 8
	// maxNamespace bounds [Config.Namespace], in bytes. Its length costs nothing
	// once a Cipher is made.
	maxNamespace = 255
)

// ErrVersion is matched by the error of unveiling what was veiled with a key
// that is not there: one retired or not yet known here, or nobody's.
var ErrVersion = errors.New("veil: no key of this version")

// Config is what [New] makes a [Cipher] of. Only Keys is required.
type Config struct {
	// Keys, at least one, with different versions. That of the greatest version
	// veils, all unveil. Give every process a new key before one veils with it:
	// until then the others cannot read its veils.
	Keys []Key

	// Bits is the width of veils: 63 for a [firn.ID], 53 for numbers that
	// JavaScript holds exactly, 64 for unsigned columns (see
	// [Cipher.VeilUint64]), or any other from 20 to 64. Default: 63. Ids must fit
	// into Bits less VersionBits; of a short width an onlooker can collect a large part.
	Bits int

	// VersionBits is how many of the top bits of a veil carry the version of its
	// key, modulo 2^VersionBits: 0 to 8, leaving at least 20 for the id. It must
	// be more than 0 if there is more than one key, and the versions must differ
	// in these bits: retire the oldest key before the count comes round to it.
	// They are not hidden: an onlooker sees which veils are of one key.
	// Default: 0, all bits are the id's.
	VersionBits int

	// Namespace makes the veils of one kind of id unlike those of another under
	// the same key: up to 255 bytes that never change, such as "orders". It need
	// not be secret. It is the tweak of FF1. Default: empty.
	Namespace string
}

// A Cipher veils and unveils ids. It may be used concurrently, allocates only for
// errors, and never waits.
type Cipher struct {
	bits, versionBits int
	namespace         string
	versions          []int // newest first
	newest            *permutation
	mark              uint64 // the newest version's bits, in place
	// byVersion is indexed by a veil's version bits, nil where there is no key.
	byVersion []*permutation
}

// New returns a cipher. The error names everything that is wrong with cfg: it
// matches [ErrKey] if keys are, and [firn.ErrRange] if a number or the
// namespace is.
func New(cfg Config) (*Cipher, error) {
	if cfg.Bits == 0 {
		cfg.Bits = DefaultBits
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("veil: %w", err)
	}
	keys := slices.SortedFunc(slices.Values(cfg.Keys), func(a, b Key) int { return cmp.Compare(b.version, a.version) })
	c := &Cipher{
		bits: cfg.Bits, versionBits: cfg.VersionBits, namespace: cfg.Namespace,
		byVersion: make([]*permutation, 1<<cfg.VersionBits),
	}
	for _, key := range keys {
		block, err := aes.NewCipher(key.material())
		if err != nil {
			return nil, keyError("%v: %w", key, err)
		}
		p := newPermutation(block, c.idBits(), []byte(cfg.Namespace))
		c.byVersion[key.version&(len(c.byVersion)-1)] = &p
		c.versions = append(c.versions, key.version)
	}
	tag := keys[0].version & (len(c.byVersion) - 1)
	c.newest = c.byVersion[tag]
	c.mark = uint64(tag) << c.idBits() // 0 without version bits, also where the shift is 64
	return c, nil
}

func (cfg *Config) check() error {
	var errs []error
	bound := func(what string, value, least, greatest int, where string) {
		if value < least || value > greatest {
			errs = append(errs, firn.NewRangeError(what, int64(value), int64(least), int64(greatest), where))
		}
	}
	bound("bits", cfg.Bits, leastBits, mostBits, "63 for an id, 53 for JavaScript; fewer than 20 are too few to hide in")
	bound("version bits", cfg.VersionBits, 0, max(0, min(maxVersionBits, cfg.Bits-leastBits)),
		fmt.Sprintf("of %d bits at least %d are left to the id", cfg.Bits, leastBits))
	bound("length of the namespace", len(cfg.Namespace), 0, maxNamespace, "in bytes")
	return errors.Join(append(errs, cfg.checkKeys()...)...)
}

func (cfg *Config) checkKeys() (errs []error) {
	if len(cfg.Keys) == 0 {
		return []error{keyError("there is none, at least one is needed")}
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
				errs = append(errs, keyError("version %d is there twice", key.version))
			case bytes.Equal(other.material(), key.material()):
				errs = append(errs, keyError("versions %d and %d are the same key", other.version, key.version))
			case cfg.VersionBits > 0 && cfg.VersionBits <= maxVersionBits && (other.version^key.version)&(1<<cfg.VersionBits-1) == 0:
				errs = append(errs, keyError("versions %d and %d are alike in the %d version bits: drop the older key, or "+
					"use more bits from the start", other.version, key.version, cfg.VersionBits))
			}
		}
	}
	if len(cfg.Keys) > 1 && cfg.VersionBits == 0 {
		errs = append(errs, keyError("there are %d, and without version bits a veil does not tell which one it is of: "+
			"set them, or make a Cipher for each key", len(cfg.Keys)))
	}
	return errs
}

// idBits is the width of the ids, and of the permutation.
func (c *Cipher) idBits() int { return c.bits - c.versionBits }

// Veil returns the id's veil, under the newest key. The error is a
// *[firn.RangeError] for an id that is negative or above [Cipher.MaxID]. In a
// width of 64 bits half of the veils are no [firn.ID], and Veil refuses all:
// use [Cipher.VeilUint64].
func (c *Cipher) Veil(id firn.ID) (firn.ID, error) {
	if id < 0 || c.bits == mostBits {
		return 0, c.refuse("id", id)
	}
	veiled, err := c.VeilUint64(uint64(id))
	return firn.ID(veiled), err
}

// Unveil returns the id whose veil it is given. Errors are a *[firn.RangeError]
// for a number that is negative, wider than veils are, or of a width of 64
// bits, and one that matches [ErrVersion] if the key is not there. Any other
// number unveils into some id: see the package comment.
func (c *Cipher) Unveil(veiled firn.ID) (firn.ID, error) {
	if veiled < 0 || c.bits == mostBits {
		return 0, c.refuse("veiled id", veiled)
	}
	id, err := c.UnveilUint64(uint64(veiled))
	return firn.ID(id), err
}

// VeilUint64 is Veil for unsigned numbers, of all widths.
func (c *Cipher) VeilUint64(id uint64) (uint64, error) {
	if width := c.idBits(); id>>width != 0 { // a shift by 64 gives 0
		return 0, c.tooWide("id", id, width)
	}
	return c.mark | c.newest.veil(id), nil
}

// UnveilUint64 is Unveil for unsigned numbers, of all widths.
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

// refuse returns the error for an ID that cannot be dealt with as one.
func (c *Cipher) refuse(what string, id firn.ID) error {
	if id < 0 {
		return firn.NewRangeError(what, int64(id), 0, int64(c.MaxID()), c.widths())
	}
	return &firn.RangeError{What: "width for a firn.ID", Value: "64 bits", Min: "20", Max: "63",
		Where: "VeilUint64 and UnveilUint64 have 64"}
}

func (c *Cipher) tooWide(what string, n uint64, width int) error {
	return &firn.RangeError{
		What: what, Value: strconv.FormatUint(n, 10), Min: "0",
		Max: strconv.FormatUint(1<<width-1, 10), Where: c.widths(),
	}
}

// widths says what sets the limits.
func (c *Cipher) widths() string {
	if c.versionBits == 0 {
		return fmt.Sprintf("veils have %d bits", c.bits)
	}
	return fmt.Sprintf("veils have %d bits, %d of them for the key's version", c.bits, c.versionBits)
}

// anyOf writes the versions that a tag may stand for.
func (c *Cipher) anyOf(tag uint64) string {
	step := uint64(len(c.byVersion))
	return fmt.Sprintf("%d, %d, %d, …", tag, tag+step, tag+2*step)
}

// keys writes the versions there are, newest first.
func (c *Cipher) keys() string {
	s := "key "
	if len(c.versions) > 1 {
		s = "keys "
	}
	for i, version := range c.versions {
		if i > 0 {
			s += ", "
		}
		s += strconv.Itoa(version)
	}
	return s
}

// Repeats reports whether veils of c, which takes the place of another cipher, may be equal to
// veils that the other has made of other ids: the keys have the same mark, or none, and differ.
func (c *Cipher) Repeats(before *Cipher) bool {
	if c.bits != before.bits || c.versionBits != before.versionBits {
		return true
	}
	was := before.byVersion[c.mark>>c.idBits()]
	return was != nil && !was.equal(c.newest)
}

// MaxID returns the greatest id that can be veiled; where unsigned numbers of
// 64 bits can be, it returns [firn.MaxID].
func (c *Cipher) MaxID() firn.ID { return firn.ID(min(1<<c.idBits()-1, uint64(firn.MaxID))) }

// String describes the cipher, for logs, without its keys:
// `veil of 63 bits, 2 of them for the version, keys 2, 1, namespace "orders"`.
func (c *Cipher) String() string {
	s := fmt.Sprintf("veil of %d bits", c.bits)
	if c.versionBits > 0 {
		s += fmt.Sprintf(", %d of them for the version", c.versionBits)
	}
	return s + ", " + c.keys() + fmt.Sprintf(", namespace %q", c.namespace)
}
