package decode

import "github.com/firn-id/firn"

// Layout parses a layout. Unit and epoch may be given separately, as by flags and query parameters; empty ones are
// those of the layout.
func Layout(layout, unit, epoch string) (firn.Layout, error) {
	l, err := firn.ParseLayout(layout)
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
