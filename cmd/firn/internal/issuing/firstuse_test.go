package issuing_test

import (
	"fmt"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/store/memstore"
)

// As the documentation warns, one caller can use up the names for all.
func TestAtMostTenThousandNamesAreMadeOnFirstUse(t *testing.T) {
	s := opened(t, memstore.New(nil), "anonymous: ['*']\ntokens:\n"+token("shop", "s3cret", "namespaces: ['*']"))
	f := s.Front(issuing.HTTP)
	everyone, err := f.Identify(access.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		if _, err := f.Find(everyone, issuing.Ask{Namespace: fmt.Sprintf("name-%d", i)}); err != nil {
			t.Fatal(i, err)
		}
	}
	shop, err := f.Identify(access.Credentials{Token: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Find(shop, issuing.Ask{Namespace: "orders"}); err == nil || failure.Of(err).Code != "unknown_namespace" {
		t.Errorf("one more: %v", err)
	}
	var b issuing.Batch
	if err := take(t, f, shop, "name-9999", 1, &b); err != nil {
		t.Errorf("one of them: %v", err)
	}
}
