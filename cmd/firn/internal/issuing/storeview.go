package issuing

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
	"github.com/firn-id/firn/store"
)

// A StoreView is what firn doctor finds about the store of the service, without a write.
type StoreView struct {
	At         time.Time       `json:"at"` // when the questions were asked, by the wall clock of the server
	Took       float64         `json:"took_seconds"`
	Durability string          `json:"durability"` // whether it keeps what it confirms: the worst verdict about its server, or unknown
	Life       *telemetry.Life `json:"life,omitempty"`
	Opened     time.Time       `json:"opened,omitzero"` // when newcomers to a pool last waited for holders whom the store might have forgotten
	Findings   []Finding       `json:"findings"`
}

// A Finding is a [store.Finding] as the interfaces show it.
type Finding struct {
	Subject string `json:"subject"`
	Verdict string `json:"verdict"`
	Says    string `json:"says"`
	Advice  string `json:"advice,omitempty"`
}

// ShowFindings returns findings as the interfaces show them.
func ShowFindings(found []store.Finding) []Finding {
	shown := make([]Finding, len(found))
	for i, f := range found {
		shown[i] = Finding{f.Subject, f.Verdict.String(), f.Says, f.Advice}
	}
	return shown
}

const (
	// viewLasts is how long one examination of the store serves all who ask.
	viewLasts = 10 * time.Second
	// viewTimeout bounds an examination. It ends also if whoever asked for it has gone.
	viewTimeout = 10 * time.Second
)

// Store returns what an examination of the store finds, at most viewLasts old, to an administrator.
func (f *Front) Store(ctx context.Context, caller *access.Caller) (StoreView, error) {
	if err := f.admin(caller, "store"); err != nil {
		return StoreView{}, err
	}
	s := f.service
	select {
	case s.examining <- struct{}{}:
		defer func() { <-s.examining }()
	case <-ctx.Done():
		return StoreView{}, f.Refuse(context.Cause(ctx))
	}
	if s.examined == nil || time.Since(s.examined.At) >= viewLasts {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), viewTimeout, fmt.Errorf("no answer within %v", viewTimeout))
		defer cancel()
		s.examined = s.viewStore(ctx)
	}
	return *s.examined, nil
}

func (s *Service) viewStore(ctx context.Context) *StoreView {
	v := &StoreView{At: time.Now().UTC(), Durability: "unknown"}
	found := examineAccess(ctx, s.store)
	server := examineServer(ctx, s.store)
	if len(server) > 0 {
		v.Durability = slices.MaxFunc(server, func(a, b store.Finding) int { return cmp.Compare(a.Verdict, b.Verdict) }).Verdict.String()
	}
	found = append(found, server...)
	names := slices.Sorted(maps.Keys(s.now.Load().pools))
	for _, name := range names[:min(len(names), MaxViewed)] {
		of, opened := examinePool(ctx, s.store, name)
		found = append(found, of...)
		if opened.After(v.Opened) {
			v.Opened = opened
		}
		if ctx.Err() != nil {
			break // the others would say the same
		}
	}
	if l, ok := s.store.(interface{ Life() telemetry.Life }); ok {
		if life := l.Life(); !life.Since.IsZero() {
			v.Life = &life
		}
	}
	v.Findings, v.Took = ShowFindings(found), time.Since(v.At).Seconds()
	return v
}
