package issuing

import (
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// A DecodeRequest is an id to decode, with the namespace that issued it or a layout. All fields but ID may be empty.
type DecodeRequest struct {
	ID, Format          string
	Namespace           string
	Layout, Unit, Epoch string
}

// Decode decodes an id: as the namespace that issued it, or without a namespace by its form.
func (f *Front) Decode(caller *access.Caller, ask DecodeRequest) (decode.Contents, error) {
	ns, err := f.issuer(caller, ask)
	if err != nil {
		return decode.Contents{}, err // which is counted
	}
	if err := decode.CheckFormat(ask.Format); err != nil {
		return decode.Contents{}, f.Refuse(failure.BadRequest("bad_format", "%v", err))
	}
	var c decode.Contents
	if ns != nil {
		c, err = ns.decode(ask.ID, ask.Format)
	} else {
		c, err = byForm(ask)
	}
	if err != nil {
		return decode.Contents{}, f.Refuse(err)
	}
	return c, nil
}

// issuer returns the namespace of a request if the caller may read its ids; nil for a request that has none.
func (f *Front) issuer(caller *access.Caller, ask DecodeRequest) (*Namespace, error) {
	if ask.Namespace == "" {
		return nil, nil //nolint:nilnil // not an error
	}
	now := f.service.now.Load()
	caller, err := f.allow(now, caller, ask.Namespace, 1)
	if err != nil {
		return nil, err
	}
	if ask.Layout != "" || ask.Unit != "" || ask.Epoch != "" {
		return nil, f.Refuse(failure.BadRequest("bad_request", "give a namespace, or a layout with unit and epoch, not both"))
	}
	ns, err := f.service.look(ask.Namespace)
	if err != nil {
		return nil, f.Refuse(err)
	}
	if ns.cipher != nil {
		if err := caller.CheckUnveil(ns.name); err != nil {
			return nil, f.denied(caller.Name(), caller.From(), "unveil namespace "+ns.name, 1, err)
		}
	}
	return ns, nil
}

// decode reads back an id of the namespace.
func (n *Namespace) decode(id, format string) (decode.Contents, error) {
	if format != "" {
		if err := n.CheckForm(format == "readable"); err != nil {
			return decode.Contents{}, err
		}
	}
	reader, err := n.reader()
	if err != nil {
		return decode.Contents{}, err
	}
	c, err := reader.Read(id, format)
	if err != nil {
		return c, failure.BadRequest("bad_id", "%v (namespace %s, of kind %s, makes %s; if another one made the id, name that one, or none to go by its form)",
			err, n.name, n.Kind(), reader.Makes)
	}
	return c, nil
}

// makeReader makes the reader of a namespace. One that was made on first use has the layout of the pool, not of
// its settings.
func (n *Namespace) makeReader() (decode.Reader, error) {
	set := n.settings
	if l, ok := n.base.(leased); ok {
		set.Layout, set.Unit, set.Epoch = l.pool.layout.String(), "", ""
	}
	return set.Reader(n.cipher)
}

// CheckForm returns an error unless the ids of the namespace are numbers, which have several encodings. If readable is
// set, they must also have a time in them that can be read.
func (n *Namespace) CheckForm(readable bool) error {
	if !n.Numeric() {
		return failure.BadRequest("bad_format", "the ids of namespace %s, of kind %s, have one form: leave out format and numbers", n.name, n.Kind())
	}
	if _, ok := n.Layout(); readable && !ok {
		return failure.BadRequest("bad_format", "the ids of namespace %s have no time in them that could be read", n.name)
	}
	return nil
}

// byForm decodes an id whose namespace is not given.
func byForm(ask DecodeRequest) (decode.Contents, error) {
	set := settings.Namespace{Pooled: settings.Pooled{Layout: ask.Layout, Unit: ask.Unit, Epoch: ask.Epoch}}
	layout, err := decode.Layout(set.LayoutText(), ask.Unit, ask.Epoch)
	if err != nil {
		return decode.Contents{}, failure.BadRequest("bad_layout", "%v", err)
	}
	serials, _ := set.SerialFormat() // nil if the layout does not fit into serials
	c, err := decode.Any(ask.ID, ask.Format, layout, serials, time.Now())
	if err != nil {
		return c, failure.BadRequest("bad_id", "%v; name the namespace that made it", err)
	}
	if c.Parts != nil && c.Parts.FarAhead(time.Now()) {
		c.Fields = append(c.Fields, decode.Field{Name: "note", Value: "the time is in the future: name the namespace that made the id"})
	}
	return c, nil
}
