package backend_test

import (
	"testing"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

func TestAJudgmentIsTheFirstTrueCase(t *testing.T) {
	judge := func(a, b bool) store.Finding {
		return backend.Judge("disk").When(a, store.Bad, "gone", "buy one").When(b, store.Doubtful, "full", "free some").Else("fine")
	}
	for _, test := range []struct {
		got, want store.Finding
	}{
		{judge(true, true), store.Finding{Subject: "disk", Verdict: store.Bad, Says: "gone", Advice: "buy one"}},
		{judge(false, true), store.Finding{Subject: "disk", Verdict: store.Doubtful, Says: "full", Advice: "free some"}},
		{judge(false, false), store.Finding{Subject: "disk", Says: "fine"}},
	} {
		if test.got != test.want {
			t.Errorf("%+v, want %+v", test.got, test.want)
		}
	}
}
