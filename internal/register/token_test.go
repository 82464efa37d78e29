package register_test

import (
	"testing"
	"testing/cryptotest"

	"github.com/firn-id/firn/internal/register"
)

func TestTokensAreDrawnByTheSystemAndDiffer(t *testing.T) {
	if register.Token() == register.Token() {
		t.Error("two writers have one name")
	}
	cryptotest.SetGlobalRandom(t, 7)
	one := register.Token()
	cryptotest.SetGlobalRandom(t, 7)
	if same := register.Token(); one != same {
		t.Errorf("from one state of the system's source it draws %s and %s", one, same)
	}
}
