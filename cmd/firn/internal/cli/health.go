package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
)

func newHealth() *cobra.Command {
	var (
		configFile, namespace string
		live                  bool
		timeout               time.Duration
	)
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask the server on this machine whether it is ready",
		Long: `health exits with 0 if the server at --http is ready, and with 1 and the reason if not. It
is for containers without a shell or curl. It reads --http, and whether the server uses
TLS, from --config too. With TLS it does not verify the certificate, which names other
hosts than this machine: it sends nothing secret.`,
		Example: `  firn health
  firn health --config firn.yaml --namespace orders
  docker run --health-cmd '/firn health' …`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout < time.Millisecond || timeout > time.Minute {
				return usage(&firn.RangeError{What: origin(cmd.Flags(), "timeout"), Value: timeout.String(), Min: "1ms", Max: "1m0s"})
			}
			cfg, err := readConfig(cmd.Flags(), configFile)
			if err != nil {
				return err
			}
			at, err := pickAddress(cmd.Flags(), "http", cfg.Listen.HTTP)
			if err != nil {
				return usage(err)
			}
			path := "/readyz"
			switch {
			case live && namespace != "":
				return usage(errors.New("--live asks whether the process answers; --namespace is for readiness: leave one out"))
			case live:
				path = "/livez"
			case namespace != "":
				path += "?namespace=" + url.QueryEscape(namespace)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			said, err := askHealth(ctx, cfg.TLS != nil, fromHere(at.text, "localhost"), path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
			return err
		},
	}
	cmd.Flags().String("http", defaultHTTP, "address of the server's HTTP")
	cmd.Flags().StringVar(&configFile, "config", "", "the server's configuration")
	cmd.Flags().StringVar(&namespace, "namespace", "", "ask about this namespace; without it: whether any can issue")
	cmd.Flags().BoolVar(&live, "live", false, "ask only whether the process answers")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Second, "how long to wait")
	return cmd
}

// fromHere returns the address by which this machine, as host loopback, reaches a server that listens on an address.
func fromHere(listen, loopback string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip, ipErr := netip.ParseAddr(host); err == nil && (host == "" || ipErr == nil && ip.IsUnspecified()) {
		return net.JoinHostPort(loopback, port)
	}
	return listen
}

// askHealth returns what the server says of its health. The error says why it is not well.
func askHealth(ctx context.Context, secure bool, address, path string) (string, error) {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see the command's help
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+path, http.NoBody)
	if err != nil {
		return "", usage(err)
	}
	res, err := client.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		err = fmt.Errorf("%w: is firn serve running there? Name another address with --http or --config", err)
	}
	switch {
	case err != nil && strings.Contains(path, "livez"):
		return "", fmt.Errorf("no answer: %w", err)
	case err != nil:
		return "", fmt.Errorf("not ready: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	said := strings.TrimSpace(string(body))
	switch {
	case err != nil:
		return "", err
	case res.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s answers %s: %s", address, res.Status, said)
	default:
		return said, nil
	}
}
