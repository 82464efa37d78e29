package server

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
)

// A form is how ids are written in an answer.
type form struct {
	encoding firn.Encoding
	compact  bool
	readable bool
	numbers  bool
	text     bool
	given    bool // format or numbers was asked for
}

func parseForm(format, numbers, accept string) (form, error) {
	f := form{encoding: firn.Decimal, compact: true, given: format != "" || numbers != ""}
	switch format {
	case "", "decimal":
	case "readable":
		f.readable = true
	default:
		e, err := firn.ParseEncoding(format)
		if err != nil {
			return f, badRequest("bad_format", "%v; so is readable", err)
		}
		f.encoding, f.compact = e, false
	}
	if numbers != "" {
		on, err := strconv.ParseBool(numbers)
		if err != nil {
			return f, badRequest("bad_request", "numbers=%q is neither true nor false", numbers)
		}
		f.numbers = on
	}
	if f.numbers && (f.encoding != firn.Decimal || f.readable) {
		return f, badRequest("bad_format", "numbers=true goes with decimal ids, not with format=%s", format)
	}
	f.text = wantsText(accept)
	return f, nil
}

// wantsText reports whether an Accept header names text/plain and not JSON.
func wantsText(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(part, ";")
		switch strings.TrimSpace(kind) {
		case "text/plain":
			return true
		case "application/json":
			return false
		}
	}
	return false
}

func (f form) contentType() string {
	if f.text {
		return "text/plain; charset=utf-8"
	}
	return "application/json"
}

// body writes the whole answer, so that one that cannot be written is an error
// and not half an answer.
func (f form) body(namespace string, layout firn.Layout, made batch) ([]byte, error) {
	if made.texts != nil {
		return f.texts(namespace, made.texts)
	}
	ids := made.ids
	b := make([]byte, 0, 64+len(ids)*24)
	if !f.text {
		b = append(b, `{"namespace":"`...)
		b = append(b, namespace...) // its characters need no escaping
		b = append(b, `","ids":[`...)
	}
	var err error
	for i, id := range ids {
		switch {
		case f.text:
			if b, err = f.append(b, layout, id); err != nil {
				return nil, err
			}
			b = append(b, '\n')
			continue
		case i > 0:
			b = append(b, ',')
		}
		if !f.numbers {
			b = append(b, '"')
		}
		if b, err = f.append(b, layout, id); err != nil {
			return nil, err
		}
		if !f.numbers {
			b = append(b, '"')
		}
	}
	if !f.text {
		b = append(b, "]}\n"...)
	}
	return b, nil
}

// texts writes ids that are texts already.
func (f form) texts(namespace string, texts []string) ([]byte, error) {
	if f.text {
		return []byte(strings.Join(texts, "\n") + "\n"), nil
	}
	b, err := json.Marshal(struct {
		Namespace string   `json:"namespace"`
		IDs       []string `json:"ids"`
	}{namespace, texts})
	return append(b, '\n'), err
}

func (f form) append(b []byte, layout firn.Layout, id firn.ID) ([]byte, error) {
	switch {
	case f.readable:
		text, err := layout.Readable(id)
		return append(b, text...), err
	case f.compact:
		return f.encoding.AppendCompact(b, id), nil
	default:
		return f.encoding.AppendFixed(b, id), nil
	}
}
