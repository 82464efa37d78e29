package cosid

import "net/http"

// id serves GET /ids and /ids/{name}: the next id, as a number.
func (h *handler) id(w http.ResponseWriter, r *http.Request) error {
	return h.issue(w, r, true, "application/json")
}

// idAsString serves GET /ids/as-string and /ids/as-string/{name}: the next id, as text.
func (h *handler) idAsString(w http.ResponseWriter, r *http.Request) error {
	return h.issue(w, r, false, "text/plain;charset=UTF-8")
}

func (h *handler) issue(w http.ResponseWriter, r *http.Request, number bool, contentType string) error {
	name := r.PathValue("name")
	if name == "" {
		name = shareName
	}
	p := &params{}
	if p.check("name", name); p.err != nil {
		p.err.early = true
		return p.err
	}
	name = FirnName(name)
	caller, err := h.cfg.Allow(r, name)
	if err != nil {
		return err
	}
	id, err := h.cfg.Issue(r.Context(), caller, name, number)
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, contentType, []byte(id))
	return nil
}
