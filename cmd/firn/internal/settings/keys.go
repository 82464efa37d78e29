package settings

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/veil"
)

// Veil configures the veil of a namespace. Its keys are in a file or an environment variable, never in the
// configuration.
type Veil struct {
	KeyFile     string `yaml:"key_file" help:"file with the keys, each a line VERSION:KEY; a relative path is one from the working directory"`
	KeyEnv      string `yaml:"key_env" help:"environment variable with the keys, instead of a file"`
	Bits        int    `yaml:"bits" default:"63" allowed:"20 to 63" help:"how many bits ids have: those of a counter, or of a layout with no more. JavaScript holds 53 exactly (layout js53)"`
	VersionBits int    `yaml:"version_bits" default:"0" help:"bits that say which of several keys made an id, for rotation"`
}

// String describes the mapping. If it changes, or the veil is removed, a later id may equal an earlier one.
func (v Veil) String() string {
	return fmt.Sprintf("bits %d with version_bits %d", cmp.Or(v.Bits, veil.DefaultBits), v.VersionBits)
}

// check returns an error if the veil makes what is no id, as half of the values of 64 bits are none, or if it does not name
// one place of its keys.
func (v *Veil) check() error {
	switch {
	case v.Bits != 0 && (v.Bits < 20 || v.Bits > veil.DefaultBits):
		return firn.NewRangeError("bits of a veil", int64(v.Bits), 20, veil.DefaultBits, "63 for an id, 53 for JavaScript; fewer than 20 can be guessed")
	case (v.KeyFile == "") == (v.KeyEnv == ""):
		return errors.New("a key is needed: key_file: FILE, or key_env: VARIABLE; give one of them, not both")
	}
	return nil
}

// most returns the greatest id that a veil has room for; 0 without a veil, or if its widths are wrong.
func (v *Veil) most() firn.ID {
	if v == nil {
		return 0
	}
	room := cmp.Or(v.Bits, veil.DefaultBits) - v.VersionBits
	if v.VersionBits < 0 || room < 1 || room > veil.DefaultBits {
		return 0
	}
	return 1<<room - 1
}

// Cipher reads the keys and returns the permutation of a namespace.
func (v *Veil) Cipher(namespace string) (*veil.Cipher, error) {
	all, err := ReadKeys(v.KeyFile, v.KeyEnv, ReadFile)
	if err != nil {
		return nil, err
	}
	return veil.New(veil.Config{Keys: all, Bits: v.Bits, VersionBits: v.VersionBits, Namespace: namespace})
}

// ErrNoKey reports that neither a file nor an environment variable with keys is given.
var ErrNoKey = errors.New("no key")

// ReadKeys reads the keys of a veil from a file if one is named, else from an environment variable. Errors name the
// place but not its content: [ErrNoKey] if no file is named and the variable is not set, and those of
// [veil.ParseKeys].
//
// Read reads the file: [ReadFile], or for a command [ReadOnce].
func ReadKeys(file, variable string, read func(path string) ([]byte, error)) ([]veil.Key, error) {
	text, place := os.Getenv(variable), "environment variable "+variable
	switch {
	case file != "":
		b, err := read(file)
		if err == nil && len(b) > maxKeyBytes {
			err = fmt.Errorf("%s is larger than %d bytes: it is not a file of keys", file, maxKeyBytes)
		}
		if err != nil {
			return nil, fmt.Errorf("key file: %w", err)
		}
		text, place = string(b), "key file "+file
	case text == "":
		return nil, fmt.Errorf("%w in the %s", ErrNoKey, place)
	}
	all, err := veil.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	return all, nil
}

// maxKeyBytes bounds a key file. It is room for hundreds of keys; a larger file is another one by mistake.
const maxKeyBytes = 64 << 10
