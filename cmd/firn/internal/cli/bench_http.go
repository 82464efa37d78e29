package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
)

// maxSamples bounds how many call durations are kept for the percentiles.
const maxSamples = 5_000_000

// benchHTTP asks a server for ids.
func benchHTTP(ctx context.Context, target string, l load, r *report) error {
	u, err := url.Parse(target)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return usage(firn.NewSyntaxError("target", target, "write http://HOST:PORT or http://HOST:PORT/NAMESPACE"))
	}
	namespace := strings.Trim(u.Path, "/")
	if namespace == "" {
		namespace = "bench"
	}
	request := (&url.URL{
		Scheme: u.Scheme, Host: u.Host, Path: "/v1/ids/" + namespace, RawQuery: fmt.Sprintf("count=%d", l.batch),
	}).String()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.callers}}
	defer client.CloseIdleConnections()
	var (
		set     idset.Set
		mu      sync.Mutex
		samples []time.Duration
	)
	fill := func(ctx context.Context, ids []firn.ID) (int, error) {
		start := time.Now()
		// A request under way when the time is over is finished, so that its ids
		// count: the server has issued them.
		n, err := fetch(context.WithoutCancel(ctx), client, request, ids)
		took := time.Since(start)
		mu.Lock()
		if len(samples) < maxSamples {
			samples = append(samples, took)
		}
		mu.Unlock()
		return n, err
	}
	ids, took, err := drive(ctx, l, fill, func(ids []firn.ID) {
		if l.verify {
			set.Add(ids)
		}
	})
	r.finish(&set, ids, took)
	if len(samples) > 0 {
		slices.Sort(samples)
		r.Median, r.P99 = samples[len(samples)/2], samples[len(samples)*99/100]
	}
	return err
}

// fetch asks for len(ids) ids.
func fetch(ctx context.Context, client *http.Client, request string, ids []firn.ID) (n int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, request, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "text/plain")
	answer, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { err = closeBody(answer.Body, err) }()
	if answer.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
		if err != nil {
			return 0, fmt.Errorf("%s: %s: %w", request, answer.Status, err)
		}
		return 0, fmt.Errorf("%s: %s: %s", request, answer.Status, strings.TrimSpace(string(text)))
	}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if n == len(ids) {
			return n, fmt.Errorf("%s: more than the %d ids asked for", request, n)
		}
		if ids[n], err = firn.ParseID(lines.Text()); err != nil {
			return n, fmt.Errorf("%s: %w", request, err)
		}
		n++
	}
	if err := lines.Err(); err != nil {
		return n, err
	}
	if n < len(ids) {
		return n, fmt.Errorf("%s: %d ids, not the %d asked for", request, n, len(ids))
	}
	return n, nil
}

func closeBody(body io.Closer, err error) error {
	if closeErr := body.Close(); err == nil {
		return closeErr
	}
	return err
}
