package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/share"
)

const (
	// eventsEvery is how often a stream sends the state.
	eventsEvery = time.Second
	// slowest is how long a client may take for one state.
	slowest = 10 * time.Second
)

// events sends each second what the caller may see, as server-sent events. It ends when the server shuts down, the client
// goes or reads too slowly, or its token is revoked. The first state is made before the answer begins, so that an error
// is an answer.
func (a *API) events(w http.ResponseWriter, r *http.Request) error {
	c, err := a.begin(r, &eventsRoute)
	if err != nil {
		return err
	}
	names := c.query["namespace"]
	if len(names) > issuing.MaxViewed {
		return a.front.Refuse(failure.BadRequest("bad_request", "namespace is given %d times: one stream shows %d", len(names), issuing.MaxViewed))
	}
	client := c.caller.Client()
	if !client.Take(share.Watches, 1) {
		return a.front.Refuse(client.Refusal(share.Watches))
	}
	defer client.Give(share.Watches, 1)
	view, release, err := a.front.View(c.caller, names)
	if err != nil {
		return err
	}
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	w.Header()["X-Accel-Buffering"] = []string{"no"} // nginx
	out := &events{w, http.NewResponseController(w)}
	if r.Method == http.MethodHead {
		release()
		return nil
	}
	for tick := time.Tick(eventsEvery); ; {
		err := out.send("state", view)
		release()
		if err != nil {
			return nil // the client has gone
		}
		select {
		case <-tick:
		case <-a.ending.Done():
			return nil
		case <-r.Context().Done():
			return nil
		}
		client.Turn(true)
		if view, release, err = a.front.View(c.caller, names); err != nil {
			_ = out.send("error", errorBody(failure.Of(err))) // the client may have gone
			return nil
		}
	}
}

// events are the server-sent events of an answer.
type events struct {
	to      http.ResponseWriter
	control *http.ResponseController
}

func (e *events) send(name string, data any) error {
	text, err := json.Marshal(data)
	if err == nil {
		err = e.control.SetWriteDeadline(time.Now().Add(slowest))
	}
	if err == nil {
		_, err = e.to.Write(append(append([]byte("event: "+name+"\ndata: "), text...), "\n\n"...))
	}
	if err == nil {
		err = e.control.Flush()
	}
	return err
}
