package cosid

import (
	"net/http"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/cosid/registrar"
)

// instance returns the instance that a request for /machines names, and the caller.
func (h *handler) instance(r *http.Request, p *params) (of registrar.Instance, caller *access.Caller, err error) {
	of = registrar.Instance{Name: p.instance("instanceId"), Stable: p.boolean("stable")}
	of.Namespace, caller, err = h.name(r, p, "namespace")
	return of, caller, err
}

// distribute serves POST /machines/{namespace}.
func (h *handler) distribute(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	bits, guard := int(p.integer("machineBit", 32)), p.duration("safeGuardDuration")
	if bits < 1 || bits > registrar.MaxBits {
		p.fail(refused("machineBit is %d; 1 to %d are allowed", bits, registrar.MaxBits))
	}
	of, caller, err := h.instance(r, p)
	if err != nil {
		return err
	}
	if err := h.admit(caller, "machines "+of.Namespace, func() (bool, error) { return h.machines.Exists(r.Context(), of.Namespace) }); err != nil {
		return err
	}
	of.New = func() (func(), error) { return h.cfg.Create(caller) }
	got, err := h.machines.Distribute(r.Context(), of, bits, guard)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		MachineID     int   `json:"machineId"`
		LastTimeStamp int64 `json:"lastTimeStamp"`
	}{got.Machine, got.Stamp})
	return nil
}

// guard serves PATCH /machines/{namespace}.
func (h *handler) guard(w http.ResponseWriter, r *http.Request) error {
	p := paramsOf(r)
	guard := p.duration("safeGuardDuration")
	of, _, err := h.instance(r, p)
	if err != nil {
		return err
	}
	if err := h.machines.Guard(r.Context(), of, guard); err != nil {
		return err
	}
	writeBody(w, http.StatusOK, "", nil)
	return nil
}

// revert serves DELETE /machines/{namespace}.
func (h *handler) revert(w http.ResponseWriter, r *http.Request) error {
	of, _, err := h.instance(r, paramsOf(r))
	if err != nil {
		return err
	}
	if err := h.machines.Revert(r.Context(), of); err != nil {
		return err
	}
	writeBody(w, http.StatusOK, "", nil)
	return nil
}
