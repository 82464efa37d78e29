package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
)

// A target is a running server that a benchmark asks for ids.
type target struct {
	fill  fill // may be called concurrently
	every int  // how many calls there are for each timed one: seldom or always
	close func() error
	// latest returns the error of the latest request, if there is one; nil for a target that makes none in the background.
	// A measurement can end before a call has returned why there are no ids.
	latest func() error
}

// targets open a target by the scheme of its URL. Errors about the URL or the load are wrong usage, and contain no
// password.
var targets = map[string]func(url string, l load) (target, error){
	"http":   httpTarget,
	"https":  httpTarget,
	"grpc":   grpcTarget,
	"grpcs":  grpcTarget,
	"redis":  redisTarget,
	"rediss": redisTarget,
}

// defaultNamespace is the namespace if a URL has none.
const defaultNamespace = "bench"

// benchTarget asks a server for ids.
func benchTarget(ctx context.Context, url string, l load, r *report) (err error) {
	scheme, _, _ := strings.Cut(url, "://")
	open := targets[scheme]
	if open == nil {
		return usage(firn.NewSyntaxError("target", storeurl.Redact(url),
			"write "+strings.Join(slices.Sorted(maps.Keys(targets)), "://, ")+":// with HOST:PORT, and /NAMESPACE if it is not "+defaultNamespace))
	}
	t, err := open(url, l)
	if err != nil {
		return err
	}
	var (
		set   idset.Set
		found found
	)
	if l.rate.IsZero() {
		found, err = drive(ctx, l, t.every, t.fill, l.into(&set))
	} else {
		found, err = driveAt(ctx, l, t.fill, l.into(&set))
	}
	r.finish(&set, found)
	if t.latest != nil && err == nil && r.IDs == 0 {
		if why := t.latest(); why != nil {
			err = fmt.Errorf("%w: %w", errNoIDs, why)
		}
	}
	return errors.Join(err, t.close())
}
