package main

import (
	"os"
	"testing"
)

func TestTheReferenceOfSettingsIsThatOfTheCode(t *testing.T) {
	have, err := os.ReadFile("../../../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page() {
		t.Error("docs/configuration.md is not what the settings declare: run make reference")
	}
}
