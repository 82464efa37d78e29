package cosid

import (
	"net/http"
	"strconv"
)

// id serves GET /ids and /ids/{name}: the next id, as a number.
func (h *handler) id(w http.ResponseWriter, r *http.Request) error {
	id, err := h.issue(r, true)
	if err != nil {
		return err
	}
	if _, err := strconv.ParseInt(id, 10, 64); err != nil {
		return refused("id %q is not a 64-bit number: use /ids/as-string", clip(id))
	}
	writeBody(w, http.StatusOK, "application/json", []byte(id))
	return nil
}

// idAsString serves GET /ids/as-string and /ids/as-string/{name}: the next id, as text.
func (h *handler) idAsString(w http.ResponseWriter, r *http.Request) error {
	id, err := h.issue(r, false)
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, "text/plain;charset=UTF-8", []byte(id))
	return nil
}

func (h *handler) issue(r *http.Request, number bool) (string, error) {
	name := r.PathValue("name")
	if name == "" {
		name = shareName
	}
	p := &params{}
	if p.check("name", name); p.err != nil {
		p.err.early = true
		return "", p.err
	}
	name = FirnName(name)
	caller, err := h.cfg.Allow(r, name)
	if err != nil {
		return "", err
	}
	return h.cfg.Issue(r.Context(), caller, name, number)
}
