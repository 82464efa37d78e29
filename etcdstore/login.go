package etcdstore

import (
	"context"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// loginTimeout bounds a login, which costs etcd 70 ms of a processor: after its restart all processes log in at once, and
// those that give up and begin again would keep it busy for ever.
const (
	loginTimeout = 20 * time.Second
	// loginSilence is how long a login waits until another member is asked, too: newcomers wait 12 s for a holder.
	loginSilence = 4 * time.Second
)

// login logs a user in when a server asks for that, for all calls of a client. The client's own does it within the time of
// each call, and shows etcd 3.4 the token that has ended, which then refuses the login too.
type login struct {
	name, password string
	members        int

	mu    sync.Mutex
	token string
	under *attempt // way; nil: none
}

type attempt struct {
	ended chan struct{}
	err   error
}

const authentication = "/etcdserverpb.Auth/Authenticate"

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (l *login) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	if call, ok := credentials.RequestInfoFromContext(ctx); ok && call.Method == authentication {
		return nil, nil
	}
	if token := l.current(); token != "" {
		return map[string]string{rpctypes.TokenFieldNameGRPC: token}, nil
	}
	return nil, nil
}

// RequireTransportSecurity implements [credentials.PerRPCCredentials]. The dialer speaks TLS, if the URL says so.
func (*login) RequireTransportSecurity() bool { return false }

func (l *login) current() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token
}

// asked reports whether a server has refused a call, which it did not begin, since it wants a user, or another token.
func asked(err error) bool {
	return is(err, rpctypes.ErrGRPCUserEmpty) || is(err, rpctypes.ErrGRPCInvalidAuthToken) || is(err, rpctypes.ErrGRPCAuthOldRevision)
}

// again logs in, unless another call has since one was refused with a token. It outlives a call whose context ends.
func (l *login) again(ctx context.Context, refused string, cc *grpc.ClientConn) error {
	l.mu.Lock()
	if l.token != refused {
		l.mu.Unlock()
		return nil
	}
	a := l.under
	if a == nil {
		a = &attempt{ended: make(chan struct{})}
		l.under = a
		go l.try(a, cc)
	}
	l.mu.Unlock()
	select {
	case <-a.ended:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *login) try(a *attempt, cc *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), loginTimeout)
	defer cancel() // also a login that hangs
	token, err := l.authenticate(ctx, cc)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.token = token
	}
	a.err, l.under = err, nil
	close(a.ended)
}

// authenticate returns a token. The client asks its members in turn, for other calls too: if one hangs, of two logins that
// begin together one goes to another member.
func (l *login) authenticate(ctx context.Context, cc *grpc.ClientConn) (token string, err error) {
	type result struct {
		token string
		err   error
	}
	results := make(chan result, 3)
	ask := func() {
		answer, err := pb.NewAuthClient(cc).Authenticate(ctx, &pb.AuthenticateRequest{Name: l.name, Password: l.password})
		results <- result{answer.GetToken(), err}
	}
	var second <-chan time.Time
	if l.members > 1 { // only once: a storm of logins must not become a greater one
		second = time.After(loginSilence)
	}
	go ask()
	for waiting := 1; ; {
		select {
		case <-second:
			waiting += 2
			go ask()
			go ask()
		case r := <-results:
			if waiting--; r.err == nil || waiting == 0 {
				return r.token, r.err
			}
		}
	}
}

// logging returns the interceptor that makes a call again after a login.
func (l *login) logging(ctx context.Context, method string, request, answer any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	token := l.current()
	err := invoke(ctx, method, request, answer, cc, options...)
	if !asked(err) || strings.HasPrefix(method, "/etcdserverpb.Auth/") {
		return err
	}
	if err := l.again(ctx, token, cc); err != nil {
		return err
	}
	return invoke(ctx, method, request, answer, cc, options...)
}
