package decode

import "github.com/firn-id/firn"

// Layout reads a layout whose unit and epoch may be given apart from it, as
// flags and query parameters do; empty ones are the layout's own.
func Layout(layout, unit, epoch string) (firn.Layout, error) {
	l, err := firn.ParseLayout(layout)
	if err != nil {
		return firn.Layout{}, err
	}
	if unit != "" {
		d, err := firn.ParseUnit(unit)
		if err != nil {
			return firn.Layout{}, err
		}
		if l, err = l.WithUnit(d); err != nil {
			return firn.Layout{}, err
		}
	}
	if epoch != "" {
		t, err := firn.ParseEpoch(epoch)
		if err != nil {
			return firn.Layout{}, err
		}
		if l, err = l.WithEpoch(t); err != nil {
			return firn.Layout{}, err
		}
	}
	return l, nil
}
