package main

import (
	"os"
	"testing"
)

func TestTheReferenceOfSettingsIsThatOfTheCode(t *testing.T) {
	for name, want := range reference() {
		have, err := os.ReadFile("../../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != want {
			t.Errorf("docs/%s is not what the settings declare: run make reference", name)
		}
	}
}
