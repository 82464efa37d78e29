package registrar

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/firn-id/firn/store"
)

// FuzzReadRecord checks that every readable record survives a round trip.
func FuzzReadRecord(f *testing.F) {
	f.Add([]byte(`{"instance":"10.0.0.1:8080","held":true,"stable":true,"guard":300000,"stamp":1795260245263}`))
	f.Add([]byte(`{"machines":{"10.0.0.1:8080":7}}`))
	f.Add([]byte(`{"instance":"a","guard":-1,"stamp":-1}`))
	f.Add([]byte(`{"machines":{"":-7}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		e := store.Entry{Key: "firn/cosid:shop/machine/00000007", Value: value, Revision: 3}
		m, err := readMachine(e)
		again(t, e, m, err, readMachine)
		b, err := readBucket(e)
		again(t, e, b, err, readBucket)
	})
}

func again[T any](t *testing.T, e store.Entry, v T, err error, read func(store.Entry) (T, error)) {
	t.Helper()
	if err != nil {
		if !errors.Is(err, store.ErrForeign) {
			t.Fatal(err)
		}
		return
	}
	if e.Value, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	if w, err := read(e); err != nil || !reflect.DeepEqual(v, w) {
		t.Fatalf("%+v, written as %s, reads as %+v, %v", v, e.Value, w, err)
	}
}
