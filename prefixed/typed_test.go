package prefixed_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/prefixed"
)

type order struct{}

func (order) Prefix() string { return "ord" }

type user struct{}

func (user) Prefix() string { return "usr" }

type nameless struct{}

func (nameless) Prefix() string { return "Not allowed" }

type (
	orderID = prefixed.ID[order]
	userID  = prefixed.ID[user]
)

func TestATypedIDHasItsPrefixInJSON(t *testing.T) {
	type doc struct {
		ID    orderID            `json:"id"`
		Buyer *userID            `json:"buyer"`
		Lines map[orderID]string `json:"lines"`
	}
	buyer := userID(7)
	in := doc{ID: orderID(classicID), Buyer: &buyer, Lines: map[orderID]string{1: "a"}}
	text, err := json.Marshal(in)
	want := `{"id":"ord_1786KEMYM8400","buyer":"usr_0000000000007","lines":{"ord_0000000000001":"a"}}`
	if string(text) != want || err != nil {
		t.Errorf("JSON is %s, %v, want %s", text, err, want)
	}
	var out doc
	if err := json.Unmarshal(text, &out); out.ID != in.ID || *out.Buyer != buyer || out.Lines[1] != "a" || err != nil {
		t.Errorf("read back it is %+v, %v", out, err)
	}
}

func TestATypedIDRefusesAnotherPrefix(t *testing.T) {
	id := orderID(42)
	err := json.Unmarshal([]byte(`"usr_0000000000007"`), &id)
	if id != 42 || !errors.Is(err, firn.ErrSyntax) || !strings.Contains(err.Error(), `its prefix is "usr", expected "ord"`) {
		t.Errorf("it is read as %d, %v", id, err)
	}
	for _, text := range []string{`7`, `""`, `"7"`, `true`, `{}`} {
		if err := json.Unmarshal([]byte(text), &id); err == nil || id != 42 {
			t.Errorf("%s is read as %d, %v", text, id, err)
		}
	}
	if got, err := prefixed.Parse[user]("usr_0000000000007"); got != 7 || err != nil {
		t.Errorf("it is read as %d, %v", got, err)
	}
}

func TestATypedIDIsANumberInSQL(t *testing.T) {
	if v, err := orderID(7).Value(); v != int64(7) || err != nil {
		t.Errorf("the value is %v (%[1]T), %v", v, err)
	}
	if v, err := orderID(-7).Value(); v != nil || !errors.Is(err, firn.ErrRange) {
		t.Errorf("the value is %v, %v", v, err)
	}
	var id orderID
	if err := id.Scan(int64(7)); id != 7 || err != nil {
		t.Errorf("it is scanned as %d, %v", id, err)
	}
	if err := id.Scan(nil); id != 7 || !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("NULL is scanned as %d, %v", id, err)
	}
}

func TestATypedIDInFmtAndSlog(t *testing.T) {
	if got, want := fmt.Sprintf("%v %s %d", orderID(7), orderID(7), orderID(7)), "ord_0000000000007 ord_0000000000007 7"; got != want {
		t.Errorf("fmt gives %s, want %s", got, want)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "id", orderID(7))
	if !strings.Contains(log.String(), `"id":"ord_0000000000007"`) {
		t.Errorf("the log has %s", &log)
	}
}

func TestAKindWithAnInvalidPrefixFails(t *testing.T) {
	id := prefixed.ID[nameless](7)
	if text, err := json.Marshal(id); err == nil || !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("JSON is %s, %v", text, err)
	}
	if err := id.UnmarshalText([]byte(id.String())); id != 7 || !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("it is read as %d, %v", id, err)
	}
	if _, err := prefixed.Parse[nameless]("Not allowed_0000000000007"); !errors.Is(err, firn.ErrSyntax) {
		t.Errorf("it is parsed: %v", err)
	}
}
