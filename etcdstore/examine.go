package etcdstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/internal/backend"
	"github.com/firn-id/firn/store"
)

// Examine implements [store.Examined]: how many members vote and answer,
// whether there is an alarm, and whose version is known to lose data.
func (s *Store) Examine(ctx context.Context) ([]store.Finding, error) {
	members, err := backend.Do(ctx, s.calls, "examine", s.prefix, func(ctx context.Context) (*clientv3.MemberListResponse, error) {
		return s.client.MemberList(ctx)
	})
	if err != nil {
		return nil, err
	}
	voters, healthy := 0, 0
	var silent, alarms []string
	var versions []store.Finding
	for _, m := range members.Members {
		if m.IsLearner {
			continue
		}
		voters++
		status, err := s.status(ctx, m.ClientURLs)
		if err != nil {
			silent = append(silent, m.Name)
			continue
		}
		healthy++
		alarms = append(alarms, status.Errors...)
		if forgets(status.Version) {
			versions = append(versions, store.Finding{Subject: "version", Verdict: store.Bad, Says: m.Name + " is an etcd " + status.Version,
				Advice: "it may forget confirmed writes when it is killed: upgrade to the latest 3.5"})
		}
	}
	most := voters/2 + 1
	quorum := store.Finding{Subject: "quorum", Verdict: store.Doubtful, Says: fmt.Sprintf("%d of %d members answer", healthy, voters)}
	switch {
	case healthy < voters:
		quorum.Advice = fmt.Sprintf("start %s; it goes on as long as %d do", strings.Join(silent, ", "), most)
		if healthy < most {
			quorum.Verdict = store.Bad
		}
	case voters == 1:
		quorum.Advice = "with three, one may fail; while this one is away, holders last until their fences"
	case voters%2 == 0:
		quorum.Advice = fmt.Sprintf("%d members stand no more failures than %d", voters, voters-1)
	default:
		quorum.Verdict = store.Good
	}
	alarm := store.Finding{Subject: "alarms", Says: "none"}
	if len(alarms) > 0 {
		alarm = store.Finding{Subject: "alarms", Verdict: store.Bad, Says: strings.Join(alarms, "; "),
			Advice: "see etcdctl alarm list; NOSPACE refuses all writes until the space is freed and the alarm disarmed"}
	}
	return append([]store.Finding{quorum, alarm}, versions...), nil
}

// forgets reports whether a version is one of those whose data may become inconsistent.
func forgets(version string) bool {
	return slices.Contains([]string{"3.5.0", "3.5.1", "3.5.2"}, version)
}

// status asks a member at whichever of its addresses answers.
func (s *Store) status(ctx context.Context, addresses []string) (*clientv3.StatusResponse, error) {
	err := fmt.Errorf("%w: it has no address", store.ErrUnavailable)
	for _, address := range addresses {
		var status *clientv3.StatusResponse
		bounded, cancel := context.WithTimeout(ctx, dialTimeout)
		status, err = s.client.Status(bounded, address)
		cancel()
		if err == nil {
			return status, nil
		}
	}
	return nil, err
}
