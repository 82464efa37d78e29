package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
)

// benchTimeout bounds a request.
const benchTimeout = 5 * time.Second

// httpServer is firn serve, asked through the Go client.
type httpServer struct {
	client    *client.Client
	transport *http.Transport
	ids       *client.Namespace[firn.ID]
	buffered  bool
}

func httpTarget(text string, l load) (target, error) {
	if l.pipeline != 0 {
		return target{}, usage(errors.New("--pipeline is for redis://; over HTTP --batch asks for many ids at once"))
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return target{}, usage(firn.NewSyntaxError("target", "…", "write http://HOST:PORT or http://HOST:PORT/NAMESPACE; a token comes from --token-file"))
	}
	prefix, namespace := "", strings.Trim(u.Path, "/")
	if at := strings.LastIndexByte(namespace, '/'); at >= 0 {
		prefix, namespace = "/"+namespace[:at], namespace[at+1:]
	}
	if namespace == "" {
		namespace = defaultNamespace
	}
	token, err := readToken(l.tokenFile)
	if err != nil {
		return target{}, err
	}
	t := &httpServer{buffered: l.buffered, transport: &http.Transport{MaxIdleConnsPerHost: l.callers}}
	t.client, err = client.New(client.Config{
		Servers: []string{u.Scheme + "://" + u.Host + prefix}, Token: token, HTTP: &http.Client{Transport: t.transport},
		Timeout: benchTimeout, Wait: benchTimeout, Buffer: client.Buffer{Max: 1 << 20},
	})
	if err != nil {
		return target{}, usage(err)
	}
	if t.ids, err = t.client.IDs(namespace); err != nil {
		return target{}, usage(errors.Join(err, t.close()))
	}
	every := always
	if l.buffered {
		every = seldom
	}
	return target{fill: t.fill, every: every, close: t.close, latest: func() error { return t.client.State().Namespaces[0].Err }}, nil
}

// readToken reads a server's token from a file: a command line is visible to other users.
func readToken(file string) (string, error) {
	if file == "" {
		return strings.TrimSpace(os.Getenv("FIRN_TOKEN")), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (t *httpServer) fill(ctx context.Context, ids []firn.ID) (int, error) {
	switch {
	case t.buffered && len(ids) == 1:
		id, err := t.ids.Next(ctx)
		if err != nil {
			return 0, err
		}
		ids[0] = id
		return 1, nil
	case t.buffered:
		return t.ids.Fill(ctx, ids)
	}
	// A request in flight when the time is over is finished, and its ids count: the server has issued them.
	taken, err := t.ids.Fetch(context.WithoutCancel(ctx), len(ids))
	return copy(ids, taken), err
}

func (t *httpServer) close() error {
	err := t.client.Close()
	t.transport.CloseIdleConnections()
	return err
}
