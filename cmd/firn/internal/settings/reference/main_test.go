package main

import (
	"os"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

func TestTheReferenceOfSettingsIsThatOfTheCode(t *testing.T) {
	for name, want := range map[string]string{"configuration.md": page(), "firn.schema.json": string(settings.Schema())} {
		have, err := os.ReadFile("../../../../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != want {
			t.Errorf("docs/%s is not what the settings declare: run make reference", name)
		}
	}
}
