package issuing

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// The end of a server waits for this lock, and a disk with keys may no longer answer.
func TestKeysAreNotReadUnderTheLockOfTheService(t *testing.T) {
	cfg, err := settings.Parse("firn.yaml", []byte("namespaces: {orders: {kind: segment, veil: {key_file: /nowhere}}}"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{}
	s.applying.Lock()
	defer s.applying.Unlock()
	if err := s.Apply(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Error(err)
	}
}
