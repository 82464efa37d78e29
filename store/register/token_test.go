package register_test

import (
	"crypto/rand"
	"testing"

	"github.com/firn-id/firn/store/register"
)

func TestTokensAreDrawnByTheSystemAndDiffer(t *testing.T) {
	one, other := register.Token(), register.Token()
	if one == other {
		t.Errorf("two writers are called %s", one)
	}
	system := rand.Reader
	t.Cleanup(func() { rand.Reader = system })
	rand.Reader = zeros{}
	if token := register.Token(); token != register.Token() || len(token) != len(one) {
		t.Errorf("of nothing but zeros it draws %s, and then another", token)
	}
}

// zeros draws them alone.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
