package decode

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// Layout parses a layout. Unit and epoch may be given separately, as by flags and query parameters; empty ones are
// those of the layout.
func Layout(layout, unit, epoch string) (firn.Layout, error) {
	l, err := ParseLayout(layout)
	if err != nil {
		return firn.Layout{}, err
	}
	cfg := l.Config()
	if unit != "" {
		if cfg.Unit, err = firn.ParseUnit(unit); err != nil {
			return firn.Layout{}, err
		}
	}
	if epoch != "" {
		if cfg.Epoch, err = firn.ParseEpoch(epoch); err != nil {
			return firn.Layout{}, err
		}
	}
	return firn.NewLayout(cfg)
}

// ParseLayout is [firn.ParseLayout]. Its error also names the presets that are near, and shows a sum of too many bits.
func ParseLayout(text string) (firn.Layout, error) {
	l, err := firn.ParseLayout(text)
	if err == nil {
		return l, nil
	}
	head, _, _ := strings.Cut(text, ",")
	if outside, ok := errors.AsType[*firn.RangeError](err); ok && strings.HasPrefix(outside.What, "sum of bits") && strings.Contains(head, "/") {
		outside.Value = strings.ReplaceAll(head, "/", "+") + " = " + outside.Value
		return l, err
	}
	return l, fmt.Errorf("%w%s", err, failure.DidYouMean(head, Presets()))
}

// Presets returns the names of the layouts that have one.
func Presets() (names []string) {
	for _, p := range firn.Presets() {
		names = append(names, p.Name)
	}
	return names
}
