package registrar

import "context"

// Exists reports whether a namespace has machines, or had some.
func (r *Registrar) Exists(ctx context.Context, namespace string) (bool, error) {
	list, err := r.cfg.Store.List(ctx, keyPrefix+namespace+"/")
	return len(list) > 0, err
}
