package settings_test

import (
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// A setting that a kind does not have would have an effect where nothing expects it.
func TestEachKindRefusesTheSettingsOfOthers(t *testing.T) {
	refused := 0
	for _, k := range settings.Kinds {
		has := map[string]bool{"kind": true}
		for _, s := range k.Settings() {
			has[s.Key] = true
		}
		for _, key := range k.Fixed() {
			if !has[key] {
				t.Errorf("kind %s cannot change %s, and does not have it", k.Name, key)
			}
		}
		for _, s := range settings.All() {
			if has[s.Key] {
				continue
			}
			n := settings.Namespace{Kind: k.Name}
			switch into := s.In(&n).(type) {
			case *string:
				*into = "x"
			case *int:
				*into = 1
			case *int64:
				*into = 1
			case **settings.Veil:
				*into = &settings.Veil{KeyEnv: "KEY"}
			default:
				continue
			}
			if refused++; n.Mistakes()[s.Key] == nil {
				t.Errorf("kind %s has no %s, and accepts it", k.Name, s.Key)
			}
		}
	}
	if refused < 20 {
		t.Errorf("only %d settings were tried", refused)
	}
}
