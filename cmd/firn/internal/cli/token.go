package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// These bound the length of a secret on standard input. Nothing limits guesses but how many secrets there are.
const minSecret, maxSecret = 20, 4096

// A tokenMade is what firn token --json prints.
type tokenMade struct {
	Name       string   `json:"name"`
	Secret     string   `json:"secret,omitempty"`
	SHA256     string   `json:"sha256"`
	Namespaces []string `json:"namespaces,omitempty"`
	Leases     []string `json:"leases,omitempty"`
	Rate       string   `json:"rate,omitempty"`
	Admin      bool     `json:"admin,omitempty"`
	Unveil     bool     `json:"unveil,omitempty"`
}

func newToken() *cobra.Command {
	var (
		made tokenMade
		hash bool
	)
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create a token for a server",
		Long: `token creates a secret of 32 random bytes and prints it once, with the line to add below
tokens: in the configuration, which contains only its SHA-256. --hash reads an existing secret
from standard input and prints only the line.`,
		Example: `  firn token --name shop --namespaces 'orders,user-*'
  firn token --name prometheus --admin
  printf %s "$OLD" | firn token --name old --hash`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			secret := access.NewSecret()
			if hash {
				var err error
				if secret, err = readSecret(cmd.InOrStdin()); err != nil {
					return err
				}
			} else {
				made.Secret = secret
			}
			made.SHA256 = access.Hash(secret)
			if (made.Admin || len(made.Leases) > 0) && !cmd.Flags().Changed("namespaces") {
				made.Namespaces = nil
			}
			checked := settings.Token{Name: made.Name, SHA256: made.SHA256, Namespaces: made.Namespaces, Leases: made.Leases, Rate: made.Rate, Admin: made.Admin, Unveil: made.Unveil}
			if err := checked.Check(); err != nil {
				return usage(err)
			}
			return answer(cmd, made, made.show)
		},
	}
	cmd.Flags().StringVar(&made.Name, "name", "token", "name in the configuration and in logs")
	cmd.Flags().StringSliceVar(&made.Namespaces, "namespaces", []string{"*"}, "namespaces that it may use: names, or patterns such as order-*; with --admin or --leases the default is no namespace")
	cmd.Flags().StringSliceVar(&made.Leases, "leases", nil, "pools of which it may lease workers, to make ids itself: names or patterns")
	cmd.Flags().StringVar(&made.Rate, "rate", "", "ids over all its namespaces, such as 1000/s (default: no limit)")
	cmd.Flags().BoolVar(&made.Admin, "admin", false, "also allow reading pools and metrics")
	cmd.Flags().BoolVar(&made.Unveil, "unveil", false, "also allow reading back the ids of veiled namespaces")
	cmd.Flags().BoolVar(&hash, "hash", false, "read the secret from standard input")
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

// readSecret reads one line.
func readSecret(from io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(from, maxSecret+1)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("the secret on standard input: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if len(line) < minSecret || len(line) > maxSecret {
		return "", fmt.Errorf("the secret on standard input has %d characters: %d to %d are allowed, at random; firn token without --hash makes one",
			len(line), minSecret, maxSecret)
	}
	return line, nil
}

// line returns the token as a line of the configuration.
func (t tokenMade) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  - {name: %s, sha256: %q", strconv.Quote(t.Name), t.SHA256)
	list := func(key string, names []string) {
		quoted := make([]string, len(names))
		for i, n := range names {
			quoted[i] = strconv.Quote(n)
		}
		if len(names) > 0 {
			fmt.Fprintf(&b, ", %s: [%s]", key, strings.Join(quoted, ", "))
		}
	}
	list("namespaces", t.Namespaces)
	list("leases", t.Leases)
	if t.Rate != "" {
		fmt.Fprintf(&b, ", rate: %q", t.Rate)
	}
	if t.Admin {
		b.WriteString(", admin: true")
	}
	if t.Unveil {
		b.WriteString(", unveil: true")
	}
	return b.String() + "}\n"
}

func (t tokenMade) show(out io.Writer) error {
	if t.Secret != "" {
		fmt.Fprintf(out, "# the secret, for the client: it is shown this once\n%s\n\n", t.Secret)
	}
	if slices.Contains(t.Namespaces, "*") {
		fmt.Fprint(out, "# it allows all namespaces: --namespaces orders,items for fewer\n")
	}
	_, err := fmt.Fprintf(out, "# for the configuration of the server: add this line below tokens:\n%s", t.line())
	return err
}
