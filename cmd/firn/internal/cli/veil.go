package cli

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/veil"
)

// keyVariable is the environment variable with the keys, if no file is given.
const keyVariable = "FIRN_VEIL_KEYS"

// veilFlags are the flags of a veil. Keys are never on a command line, which other users of the machine can see.
type veilFlags struct {
	keyFile, namespace string
	bits, versionBits  int
	format             string
}

func (f *veilFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.keyFile, "key-file", "", "file with lines VERSION:KEY, a key being 16, 24 or 32 bytes in hex or base64 (default: the content of "+keyVariable+")")
	flags.StringVar(&f.namespace, "namespace", "", "namespace of the ids, such as orders: each namespace veils differently")
	flags.IntVar(&f.bits, "bits", veil.DefaultBits, "width of veiled ids in bits, 20 to 63; 53 fits JavaScript numbers")
	flags.IntVar(&f.versionBits, "version-bits", 0, "how many of the bits hold the key version; needed with more than one key")
	flags.StringVar(&f.format, "format", "decimal", encodingHelp+"; with :fixed also decimal:fixed and so on")
}

func (f *veilFlags) cipher() (*veil.Cipher, error) {
	// 0 would mean the default of veil.New, and half of the values with 64 bits are not ids.
	if f.bits < 20 || f.bits > veil.DefaultBits {
		return nil, usage(firn.NewRangeError("--bits", int64(f.bits), 20, veil.DefaultBits, "63 for an id, 53 for JavaScript; fewer than 20 are too few to hide in"))
	}
	all, err := settings.ReadKeys(f.keyFile, keyVariable, settings.ReadOnce)
	if errors.Is(err, settings.ErrNoKey) {
		return nil, usage(fmt.Errorf("no key: give --key-file FILE, or the keys in %s; a new one: echo \"1:$(openssl rand -hex 32)\" > order.key", keyVariable))
	}
	if err != nil {
		return nil, err
	}
	c, err := veil.New(veil.Config{Keys: all, Bits: f.bits, VersionBits: f.versionBits, Namespace: f.namespace})
	if err != nil {
		return nil, usage(err)
	}
	return c, nil
}

func newVeil() *cobra.Command {
	return veiling("veil", "Hide the order and number of ids behind a key", `veil encrypts ids to numbers of the same width, which do not reveal when and how many
ids were issued (FF1 of NIST SP 800-38G). unveil reverses it with the key. Ids come as
arguments, or one per line on standard input with -.`,
		`  echo "1:$(openssl rand -hex 32)" > order.key
  firn veil --key-file order.key 249807960190540619
  firn next -n 3 | firn veil --key-file order.key - | firn unveil --key-file order.key -`, (*veil.Cipher).Veil)
}

func newUnveil() *cobra.Command {
	return veiling("unveil", "Turn veiled ids back into ids", `unveil reverses firn veil, with the same key, namespace and width. Every number of
that width unveils to some id; check that the id exists.`,
		"  firn unveil --key-file order.key 1234567890123456789", (*veil.Cipher).Unveil)
}

func veiling(name, short, long, example string, do func(*veil.Cipher, firn.ID) (firn.ID, error)) *cobra.Command {
	var f veilFlags
	cmd := &cobra.Command{
		Use: name + " ID…", Short: short, Long: long, Example: example,
		Args: someIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := decode.ParseFormat(f.format)
			if format.Readable {
				err = errors.New("--format readable writes the time of an id; a veiled one has none: " + encodingHelp + " are allowed")
			}
			if err != nil {
				return usage(err)
			}
			c, err := f.cipher()
			if err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			var line []byte
			show := func(text string) error {
				id, err := format.Encoding.Parse(text)
				if err != nil {
					return err
				}
				if id, err = do(c, id); err != nil {
					return err
				}
				if line, err = format.Append(line[:0], firn.Layout{}, id); err != nil {
					return err
				}
				_, err = out.Write(append(line, '\n'))
				return err
			}
			return eachID(args, cmd.InOrStdin(), out, show)
		},
	}
	f.add(cmd)
	return cmd
}
