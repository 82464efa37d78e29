package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/dial"
)

// probes is how many connections are asked for their cluster: a name may lead to several clusters.
const probes = 8

// examine looks at voters, clusters behind a name, alarms, bad versions.
func (s *Store) examine(ctx context.Context) ([]store.Finding, error) {
	members, err := backend.Do(ctx, s.calls, "examine", s.prefix, func(ctx context.Context) (*clientv3.MemberListResponse, error) {
		return s.client.MemberList(ctx)
	})
	if err != nil { // as without a leader, or the permission
		return []store.Finding{s.named(ctx)}, err
	}
	voters, revision := 0, int64(0)
	var silent, alarms, answer []string
	led := false
	var versions []store.Finding
	for _, m := range members.Members {
		if m.IsLearner {
			continue
		}
		voters++
		for i, url := range m.ClientURLs {
			if s.secures {
				m.ClientURLs[i] = strings.Replace(url, "https://", "http://", 1)
			}
		}
		status, address := s.status(ctx, m.ClientURLs)
		if status == nil {
			silent = append(silent, m.Name)
			continue
		}
		led = led || status.Leader != 0
		for _, e := range status.Errors {
			if e != rpctypes.ErrorDesc(rpctypes.ErrNoLeader) { // no alarm
				alarms = append(alarms, e)
			}
		}
		answer = append(answer, address)
		revision = max(revision, status.Header.Revision)
		versions = append(versions, examineVersion(m.Name, status.Version)...)
	}
	clusters := s.clusters(ctx)
	differ, unknown := s.differ(ctx, answer, revision)
	healthy, most := voters-len(silent), voters/2+1
	says, verdict := fmt.Sprintf("%d of %d members answer", healthy, voters), store.Doubtful
	if healthy < most {
		verdict = store.Bad
	}
	return append([]store.Finding{
		backend.Judge("quorum").
			When(clusters > 1, store.Bad, fmt.Sprintf("connections to its address lead to %d clusters: each is a separate store, and ids repeat", clusters), "name the members of one cluster").
			When(differ, store.Bad, "its members have different data: each answers from its own, and ids repeat", "restore all members from one snapshot; etcdctl endpoint hashkv --cluster shows which differ").
			When(healthy >= most && !led, store.Bad, says+leaderless, seeEachOther).
			When(healthy < voters, verdict, says, fmt.Sprintf("start %s; the cluster works as long as %d answer", strings.Join(silent, ", "), most)).
			When(unknown != nil, store.Doubtful, fmt.Sprintf("%s; whether they have the same data is unknown: %v", says, unknown), "see that each member sees the others, and what etcdctl endpoint hashkv --cluster says").
			When(voters == 1, store.Doubtful, says, "with three members one may fail; without this one, holders continue until their fences").
			When(voters%2 == 0, store.Doubtful, says, fmt.Sprintf("%d members tolerate no more failures than %d", voters, voters-1)).
			Else(says),
		backend.Judge("alarms").
			When(len(alarms) > 0, store.Bad, strings.Join(alarms, "; "),
				"see etcdctl alarm list; NOSPACE refuses all writes until the space is freed and the alarm disarmed").
			Else("no alarms"),
	}, versions...), nil
}

const (
	leaderless   = ", and none knows a leader"
	seeEachOther = "most members of the cluster must be up and see each other: see etcdctl endpoint status --cluster"
)

// Diagnose is Examine for a URL that [Open] cannot open, as when the cluster has no quorum to log in. It asks the
// servers without a user, which needs neither.
func Diagnose(ctx context.Context, text string) ([]store.Finding, error) {
	cfg, prefix, err := parseURL(text, new(dial.Dialer))
	if err != nil {
		return nil, fmt.Errorf("etcdstore: %w: %w", store.ErrRefused, err)
	}
	cfg.Username, cfg.Password = "", ""
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("etcdstore: %w: %w", store.ErrUnavailable, err)
	}
	s := &Store{client: client, prefix: prefix, calls: backend.NewCalls("etcdstore", backend.NewLanes(0), classify), secures: true}
	found, err := s.examine(ctx)
	return found, errors.Join(err, s.Close())
}

// named reports which of the servers in the URL answer, and whether they know a leader.
func (s *Store) named(ctx context.Context) store.Finding {
	addresses := s.client.Endpoints() // with http:// or https://
	all := make([]*clientv3.StatusResponse, len(addresses))
	var group sync.WaitGroup
	for i, address := range addresses {
		group.Go(func() { all[i], _ = s.status(ctx, []string{address}) })
	}
	group.Wait()
	var silent []string
	led := false
	for i, status := range all {
		if status == nil {
			_, host, _ := strings.Cut(addresses[i], "://")
			silent = append(silent, host)
			continue
		}
		led = led || status.Leader != 0
	}
	says := fmt.Sprintf("%d of the %d servers named answer", len(addresses)-len(silent), len(addresses))
	return backend.Judge("quorum").
		When(len(silent) > 0, store.Bad, says, "start "+strings.Join(silent, ", ")+": most members of the cluster must be up and see each other").
		When(!led, store.Bad, says+leaderless, seeEachOther).
		Else(says)
}

// clusters returns how many clusters connections lead to. Clusters started with the same names, addresses
// and token, as by default, have the same ids. But a member's log never gets shorter: if it seems to,
// there are two clusters, as long as their logs differ in length.
func (s *Store) clusters(ctx context.Context) int {
	type member struct{ cluster, id uint64 }
	length, ids, twins := map[member]uint64{}, map[uint64]bool{}, 0
	for range 2 {
		var all [probes]*clientv3.StatusResponse
		var group sync.WaitGroup
		for i := range all { // in parallel: each silent endpoint costs a time-out
			named := s.client.Endpoints()
			turn := i % len(named)
			group.Go(func() { all[i], _ = s.status(ctx, slices.Concat(named[turn:], named[:turn])) })
		}
		group.Wait()
		before := maps.Clone(length)
		for _, status := range all {
			if status == nil {
				continue
			}
			m := member{status.Header.GetClusterId(), status.Header.GetMemberId()}
			ids[m.cluster] = true
			if status.RaftIndex < before[m] {
				twins = 1
			}
			length[m] = max(length[m], status.RaftIndex)
		}
	}
	return len(ids) + twins
}

// compared is how many registers of each member are compared: those written last.
const compared = 1000

// differ reports whether members have different data, as after each was restored from a snapshot of its own. All read at the
// latest revision that any of them had. The reads are linearizable: a member first applies all that was confirmed, so one
// that then lacks the revision lacks it for good. The hash is of all data, but with users only root may ask for it, and members
// that have compacted to different revisions have different ones. The error says why a member could not be compared.
func (s *Store) differ(ctx context.Context, addresses []string, revision int64) (differ bool, unknown error) {
	if len(addresses) < 2 {
		return false, nil
	}
	contents, hashes := map[string]bool{}, map[int64]uint32{} // the hashes by the revision up to which a member has compacted
	for _, address := range addresses {
		bounded, cancel := context.WithTimeout(ctx, dialTimeout)
		content, err := s.readAt(bounded, address, revision)
		answer, hidden := s.client.HashKV(bounded, address, revision)
		cancel()
		if err != nil {
			differ, unknown = differ || is(err, rpctypes.ErrGRPCFutureRev), fmt.Errorf("%s: %w", address, err)
			continue
		}
		contents[content] = true
		if hidden == nil {
			other, known := hashes[answer.CompactRevision]
			differ = differ || known && other != answer.Hash
			hashes[answer.CompactRevision] = answer.Hash
		}
	}
	return differ || len(contents) > 1, unknown
}

// readAt reads the registers that were written last up to a revision, from the member at an address.
func (s *Store) readAt(ctx context.Context, address string, revision int64) (string, error) {
	member, err := s.client.Dial(address)
	if err != nil {
		return "", err
	}
	defer func() { _ = member.Close() }() // all has been read
	answer, err := clientv3.NewKVFromKVClient(pb.NewKVClient(member), s.client).Get(ctx, s.prefix+"firn/", clientv3.WithPrefix(), clientv3.WithRev(revision),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend), clientv3.WithLimit(compared))
	if err != nil {
		return "", err
	}
	return fmt.Sprint(answer.Count, answer.Kvs), nil
}

// forgets reports whether a version may lose data, or let members diverge: when it is killed (3.5.0 to
// 3.5.2; before 3.4.21 and 3.5.5, if it is the only member), or if it has users (before 3.4.22 and
// 3.5.6).
func forgets(version string) bool {
	var minor, patch int
	n, err := fmt.Sscanf(version, "3.%d.%d", &minor, &patch)
	return err == nil && n == 2 && (minor < 4 || minor == 4 && patch < 22 || minor == 5 && patch < 6)
}

func examineVersion(member, version string) []store.Finding {
	if !forgets(version) {
		return nil
	}
	return []store.Finding{{Subject: "version", Verdict: store.Bad, Says: member + " is an etcd " + version,
		Advice: "it may lose confirmed writes when it is killed, or if it has users: upgrade to 3.4.22, 3.5.6 or later"}}
}

// status asks a member at its addresses in turn. It returns nil if no address answers, and else that which did.
func (s *Store) status(ctx context.Context, addresses []string) (*clientv3.StatusResponse, string) {
	for _, address := range addresses {
		bounded, cancel := context.WithTimeout(ctx, dialTimeout)
		status, err := s.client.Status(bounded, address)
		cancel()
		if err == nil {
			return status, address
		}
	}
	return nil, ""
}
