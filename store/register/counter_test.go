package register_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// The use of the next write has all that the record says, and is the process's own if the record says no more.
func TestARecordKeepsItsUse(t *testing.T) {
	keys := func(all ...string) map[string]string {
		made := map[string]string{}
		for _, key := range all {
			made[key] = "of " + key
		}
		return made
	}
	mine := &register.Use{Kind: "segment", Form: store.Form{Name: "veil", Keys: keys("1", "2")}}
	for _, c := range []struct {
		found, want register.Use // a zero want: an error
		what        string
	}{
		{register.Use{}, *mine, ""}, {register.Use{Kind: "segment"}, *mine, ""}, {*mine, *mine, ""},
		{register.Use{Kind: "segment", Form: store.Form{Name: "veil", Keys: keys("1")}}, *mine, ""},
		{register.Use{Form: store.Form{Keys: keys("3")}}, register.Use{Kind: "segment", Form: store.Form{Name: "veil", Keys: keys("1", "2", "3")}}, ""},
		{register.Use{Kind: "sequence"}, register.Use{}, "kind"}, {register.Use{Form: store.Form{Name: "plain"}}, register.Use{}, "form"},
		{register.Use{Form: store.Form{Keys: map[string]string{"2": "another"}}}, register.Use{}, "key"},
	} {
		got, err := mine.Over("orders", c.found)
		if c.what != "" {
			if taken := new(store.TakenError); !errors.As(err, &taken) || taken.What != c.what || taken.Counter != "orders" || taken.Have == "" || taken.Want == "" || got != nil {
				t.Errorf("%+v: %+v, %v", c.found, got, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(*got, c.want) || (got == mine) != reflect.DeepEqual(c.want, *mine) {
			t.Errorf("%+v: %+v, %v", c.found, got, err)
		}
	}
	unknown := &register.Use{Kind: "segment"}
	if got, err := unknown.Over("orders", *mine); err != nil || !reflect.DeepEqual(got, mine) {
		t.Errorf("a use without a form: %+v, %v", got, err)
	}
	if got, err := unknown.Over("orders", register.Use{Form: store.Form{Name: "plain"}}); err != nil || got.Name != "plain" {
		t.Errorf("a use without a form: %+v, %v", got, err)
	}
	if got := register.CounterKey("orders"); got != "firn/counter:orders" {
		t.Error(got)
	}
}
