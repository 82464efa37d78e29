package zkstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/internal/hosturl"
	"github.com/firn-id/firn/store"
)

// Open returns a store in the ZooKeeper that a URL names. No error repeats the
// password.
//
//	zookeeper://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/PATH]
//
// All znodes are below PATH, which is made at the first write. With a user they
// are made for that user only (scheme digest).
func Open(ctx context.Context, text string) (*Store, error) {
	u := hosturl.Parse(text, defaultPort)
	if u.Scheme != "zookeeper" {
		u.Fail(errors.New("a URL begins with zookeeper://"))
	}
	if u.Path != "" {
		if err := store.CheckKey(u.Path); err != nil || strings.Contains("/"+u.Path+"/", "//") {
			u.Fail(errors.Join(err, fmt.Errorf("path /%s has a level without a name, or begins or ends with a slash too many", u.Path)))
		}
	}
	if err := u.Err(); err != nil {
		return nil, fmt.Errorf("zkstore: %w: %w", store.ErrRefused, err)
	}
	s := &Store{session: &session{servers: u.Hosts}, acl: zk.WorldACL(zk.PermAll), flights: make(chan struct{}, maxFlights)}
	if u.User != "" {
		s.acl = zk.AuthACL(zk.PermAll)
		s.session.auth = []byte(u.User + ":" + u.Password)
	}
	if err := s.session.open(); err != nil {
		return nil, wrap("open", u.Path, err)
	}
	if u.Path != "" {
		s.root = (&Store{}).path(u.Path)
	}
	_, err := call(ctx, s, func(context.Context) (struct{}, error) {
		if err := s.session.login(s.session.now()); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, s.sync()
	})
	if err != nil {
		return nil, errors.Join(wrap("open", u.Path, err), s.Close())
	}
	return s, nil
}

const defaultPort = "2181"

// dial waits longer than the client would, a second: many may come at once.
func dial(network, address string, _ time.Duration) (net.Conn, error) {
	return net.DialTimeout(network, address, sessionTimeout)
}

// silent keeps the client from writing to standard error; its errors are returned.
type silent struct{}

func (silent) Printf(string, ...any) {}
