package zkstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/dial"
	"github.com/firn-id/firn/store/hosturl"
)

// Open returns a store in the ZooKeeper that a URL names. No error repeats the password.
//
//	zookeeper://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/PATH]
//
// All znodes are below PATH, which the first write creates. With a user, only that user can access
// them (scheme digest).
func Open(ctx context.Context, text string) (*Store, error) {
	s, err := parse(text)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// parse returns a store without a session.
func parse(text string) (*Store, error) {
	u := hosturl.Parse(text, "2181", "zookeeper")
	root := u.Levels()
	if root != "" {
		u.Fail(store.CheckKey(root))
	}
	if err := u.Err(); err != nil {
		return nil, fmt.Errorf("zkstore: %w: %w", store.ErrRefused, err)
	}
	s := &Store{servers: u.Hosts, acl: zk.WorldACL(zk.PermAll)}
	s.dialer = &dial.Dialer{Check: check, Report: &s.report}
	s.calls = backend.NewCalls("zkstore", backend.NewLanes(0), s.classify, s.servers...)
	if u.User != "" {
		s.acl = zk.AuthACL(zk.PermAll)
		s.auth = []byte(u.User + ":" + u.Password)
	}
	if root != "" {
		s.root = s.path(root)
	}
	return s, nil
}

// classify returns an error's kind and a hint. ErrRefused: found before the server writes.
func (s *Store) classify(err error) (hint string, kind error) {
	lost := errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer)
	switch why := s.report.Err(); {
	case lost && why != nil:
		return why.Error(), store.ErrUnavailable
	case errors.Is(err, zk.ErrNoAuth):
		return "the znodes belong to another user: use zookeeper://USER:PASSWORD@HOST, or another path", store.ErrRefused
	case errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return "check user and password", store.ErrRefused
	default:
		return "", store.ErrUnavailable
	}
}
