package backend_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/backend"
	"github.com/firn-id/firn/store"
)

func newCalls() *backend.Calls {
	return backend.NewCalls("teststore", func(error) (string, error) { return "look at it", store.ErrUnavailable })
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
	short, end := context.WithTimeout(context.Background(), time.Millisecond)
	defer end()
	if _, err := backend.Do(short, calls, "try", "k", one); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "256") {
		t.Error(err)
	}
	close(release)
	for range limit {
		<-begun
	}
	if !calls.Close() || calls.Close() {
		t.Error("the first Close is the one that says so")
	}
	if _, err := backend.Do(context.Background(), calls, "try", "k", one); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("closed: %v", err)
	}
}

func TestWhatIsWrittenAsTextIsReadAgain(t *testing.T) {
	for _, value := range []string{"", "v", "two\nlines"} {
		drawn, err := backend.Draw("k", []byte(value))
		if err != nil || drawn == 0 {
			t.Fatal(drawn, err)
		}
		r, got, ok := backend.Decode(backend.Encode(drawn, []byte(value)))
		if !ok || r != drawn || string(got) != value {
			t.Errorf("%q of %d was read as %q of %d, %t", value, drawn, got, r, ok)
		}
	}
	for _, text := range []string{"", "00000000000000ff", "ff\nv", "00000000000000fg\nv", "+0000000000000ff\nv"} {
		if r, value, ok := backend.Decode(text); ok {
			t.Errorf("%q was read as %q of %d", text, value, r)
		}
	}
	for key, value := range map[string][]byte{"": nil, "k": make([]byte, store.MaxValueBytes+1)} {
		if _, err := backend.Draw(key, value); !errors.Is(err, store.ErrRefused) {
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
