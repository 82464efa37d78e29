package issuing

import (
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// Exists reports whether a namespace exists that the caller may use, or would be made on its first use. An error means
// that there is no such name, or that the caller may not use it.
func (r Reader) Exists(caller *access.Caller, name string) (bool, error) {
	f := r.front
	now := f.service.now.Load()
	if _, err := f.allow(now, caller, name, 1); err != nil {
		return false, err
	}
	if now.namespaces[name] != nil {
		return true, nil
	}
	if err := settings.CheckName(name); err != nil {
		return false, f.Refuse(err)
	}
	return now.dynamic != nil, nil
}
