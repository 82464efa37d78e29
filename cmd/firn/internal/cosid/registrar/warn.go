package registrar

import "time"

// warnEvery is how often warnings are logged. Clients cause them, as fast as they send requests.
const warnEvery = time.Second

// warn logs a warning, at most one in a second.
func (r *Registrar) warn(text string, fields ...any) {
	omitted, due := r.warned.Due(r.cfg.Time.Monotonic())
	if !due {
		r.cfg.Log.Debug(text, fields...)
		return
	}
	r.cfg.Log.Warn(text, append(fields, "omitted", omitted)...)
}
