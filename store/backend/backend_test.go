package backend_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

func newCalls() *backend.Calls {
	return backend.NewCalls("teststore", backend.NewLanes(0), func(error) (string, error) { return "look at it", store.ErrUnavailable })
}

func TestACallEndsWithItsContextAndNoOtherRequestFollows(t *testing.T) {
	calls := newCalls()
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(context.Background())
	abandoned := make(chan error)
	_, err := backend.Do(ctx, calls, "try", "k", func(ctx context.Context) (int, error) {
		cancel(why)
		<-ctx.Done()
		abandoned <- ctx.Err()
		return 1, nil
	})
	if !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-abandoned; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The caller's deadline has not passed, so the error does not name it.
func TestACallThatHangsEndsAsThatOfAnUnavailableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, began := newCalls(), time.Now()
		_, err := backend.Do(t.Context(), calls, "try", "k", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if took := time.Since(began); took != 10*time.Second || !errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestCallsInFlightAreBounded(t *testing.T) {
	calls := newCalls()
	ctx, cancel := context.WithCancel(context.Background())
	begun, release := make(chan struct{}), make(chan struct{})
	const limit = 256
	var group sync.WaitGroup
	for range limit {
		group.Go(func() {
			_, err := backend.Do(ctx, calls, "try", "k", func(context.Context) (int, error) {
				begun <- struct{}{}
				<-release
				begun <- struct{}{}
				return 0, nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	for range limit {
		<-begun
	}
	cancel() // abandoned calls count
	group.Wait()
	one := func(context.Context) (int, error) { return 1, nil }
	short, end := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer end()
	if _, err := backend.Do(short, calls, "try", "k", one); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "256") {
		t.Error(err)
	}
	close(release)
	for range limit {
		<-begun
	}
	ended := 0
	for range 2 {
		if err := calls.Close("k", func() error { ended++; return nil }); err != nil || ended != 1 {
			t.Errorf("%v, ended %d times", err, ended)
		}
	}
	if _, err := backend.Do(context.Background(), calls, "try", "k", one); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("closed: %v", err)
	}
}

func TestAnEncodedRegisterIsDecoded(t *testing.T) {
	for _, value := range []string{"", "v", "two\nlines"} {
		e, err := backend.Write("k", []byte(value), func(store.Entry) (string, error) { return "life", nil })
		if err != nil || e.Revision == 0 || e.Life != "life" || e.Key != "k" || string(e.Value) != value {
			t.Fatal(e, err)
		}
		got, err := backend.Decode("k", backend.Encode(e.Revision, e.Value), "place")
		if err != nil || got.Key != "k" || got.Revision != e.Revision || string(got.Value) != value {
			t.Errorf("%+v was read as %+v, %v", e, got, err)
		}
	}
	for _, text := range []string{"", "00000000000000ff", "ff\nv", "00000000000000fg\nv", "+0000000000000ff\nv", "00000000000000FF\nv", "0000000000000000\nv"} {
		if got, err := backend.Decode("k", text, "place"); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "another place") {
			t.Errorf("%q was read as %+v, %v", text, got, err)
		}
	}
}

// A source with a state would repeat itself in two copies of a process.
func TestTheSystemDrawsRevisions(t *testing.T) {
	system := rand.Reader
	t.Cleanup(func() { rand.Reader = system })
	rand.Reader = fours{}
	e, err := backend.Write("k", nil, func(store.Entry) (string, error) { return "", nil })
	if err != nil || e.Revision != 0x0202020202020203 {
		t.Errorf("of nothing but fours it draws %x, %v", e.Revision, err)
	}
}

// fours draws them alone.
type fours struct{}

func (fours) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 4
	}
	return len(b), nil
}

func TestAWriteOutOfBoundsIsNotMade(t *testing.T) {
	for key, value := range map[string][]byte{"": nil, "k": make([]byte, store.MaxValueBytes+1)} {
		if _, err := backend.Write(key, value, func(store.Entry) (string, error) {
			t.Errorf("key %q, %d bytes: it was made", key, len(value))
			return "", nil
		}); !errors.Is(err, store.ErrRefused) {
			t.Errorf("key %q, %d bytes: %v", key, len(value), err)
		}
	}
}

func TestAnErrorKeepsTheKindItHas(t *testing.T) {
	for _, test := range []struct {
		err, kind error
		want      string
	}{
		{errors.New("away"), store.ErrUnavailable, `x: get "k": unavailable: away (hint)`},
		{errors.New("away"), nil, `x: get "k": away (hint)`},
		{store.ErrUnavailable, store.ErrRefused, `x: get "k": unavailable (hint)`},
	} {
		err := backend.Wrap("x", "get", "k", test.err, "hint", test.kind)
		if err.Error() != test.want || !errors.Is(err, test.err) {
			t.Error(err)
		}
	}
}

func TestAnErrorOfAnUnavailableStoreNamesItsServersOnce(t *testing.T) {
	for err, want := range map[error]string{
		store.ErrUnavailable:                                        `x: get "k": server h:1, h:2: unavailable`,
		errors.New("dial tcp h:2: refused"):                         `x: get "k": unavailable: dial tcp h:2: refused`,
		errors.New("hinted"):                                        `x: get "k": unavailable: server h:1, h:2: hinted (hint)`,
		store.ErrConflict:                                           `x: get "k": conflict`,
		errors.Join(store.ErrRefused, errors.New("no")):             "x: get \"k\": refused\nno",
		errors.New("x509: certificate signed by unknown authority"): `x: get "k": unavailable: server h:1, h:2: x509: certificate signed by unknown authority (name the authority's certificate with tls_ca=FILE, in a URL of PostgreSQL with sslrootcert=FILE)`,
	} {
		calls := backend.NewCalls("x", backend.NewLanes(0), func(err error) (string, error) {
			switch {
			case err.Error() == "hinted":
				return "hint", store.ErrUnavailable
			}
			return "", store.ErrUnavailable
		}, "h:1", "h:2")
		if got := calls.Wrap("get", "k", err); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

func TestAnUrgentCallDoesNotWaitBehindOthers(t *testing.T) {
	calls := backend.NewCalls("teststore", backend.NewLanes(5), func(error) (string, error) { return "", nil })
	release, begun := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for range 2 { // the connections that are not reserved
		group.Go(func() {
			if _, err := backend.Do(context.Background(), calls, "try", "k", func(context.Context) (int, error) {
				begun <- struct{}{}
				<-release
				return 0, nil
			}); err != nil {
				t.Error(err)
			}
		})
		<-begun
	}
	ended, cancel := context.WithCancel(context.Background())
	third := make(chan error)
	go func() {
		_, err := backend.Do(ended, calls, "try", "k", func(context.Context) (int, error) { return 0, nil })
		third <- err
	}()
	if n, err := backend.Do(store.Urgent(context.Background()), calls, "look", "k", func(context.Context) (int, error) { return 7, nil }); n != 7 || err != nil {
		t.Error(n, err)
	}
	cancel()
	if err := <-third; !errors.Is(err, context.Canceled) { // before a place is free
		t.Errorf("a third call began, %v", err)
	}
	close(release)
	group.Wait()
}
