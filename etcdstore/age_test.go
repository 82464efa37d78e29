package etcdstore_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/firn-id/firn/etcdstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/storetest/servers"
)

func TestAStoreLeavesAClusterThatAnswersAndIsNoLongerNamed(t *testing.T) {
	t.Parallel()
	former, next := servers.Etcd(t), servers.Etcd(t, "--initial-cluster-token=next")
	name := servers.NewProxy(t, former.Addr(), nil)
	s := open(t, "etcd://"+name.Addr())
	if _, err := s.CompareAndSwap(t.Context(), "k", 0, nil); err != nil {
		t.Fatal(err)
	}
	name.Choose(func(int) string { return next.Addr() }) // for new connections
	for begun := time.Now(); ; {
		_, err := s.Get(t.Context(), "k")
		took := time.Since(begun)
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if took > backend.ConnectionLife+2*time.Second { // newcomers wait 9 s longer than the time between two looks, and a look may take 2 s
			t.Fatalf("the former cluster was asked for %v: %v", took, err)
		}
	}
}

// The calls are writes, which no client repeats.
func TestNoCallFailsWhenAConnectionEndsByItsAge(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	balancer, connections := turns(t, server.Addr(), server.Addr())
	s := open(t, "etcd://"+balancer.Addr())
	var calls atomic.Int64
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			var last store.Revision
			for connections.Load() < 4 { // one is for the query of the cluster
				calls.Add(1)
				written, err := s.CompareAndSwap(t.Context(), strconv.Itoa(i), last, nil)
				if err != nil {
					t.Error(err)
					return
				}
				last = written.Revision
			}
		})
	}
	group.Wait()
	t.Logf("%d calls", calls.Load())
}

// The reader is busy, or not scheduled, when the life ends.
func TestAnswersAreReadAfterTheEndOfALife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		c := etcdstore.Ageing(client, time.Hour)
		go func() {
			w := http2.NewFramer(server, nil)
			err := w.WriteSettings()
			time.Sleep(3 * time.Hour)
			if err := errors.Join(err, w.WriteData(1, true, []byte("answer"))); err != nil {
				t.Error(err)
			}
		}()
		frames := http2.NewFramer(nil, c)
		for _, want := range []http2.FrameType{http2.FrameSettings, http2.FrameGoAway, http2.FrameData} {
			if f, err := frames.ReadFrame(); err != nil || f.Header().Type != want {
				t.Fatalf("%v, %v", f, err)
			}
			time.Sleep(2 * time.Hour)
		}
	})
}

// An idle connection ends, too: the next call must not find a server that is no longer named.
func TestAnIdleConnectionEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		c := etcdstore.Ageing(client, time.Hour)
		go func() { _ = http2.NewFramer(server, nil).WriteSettings() }()
		frames := http2.NewFramer(nil, c)
		begun := time.Now()
		for _, want := range []http2.FrameType{http2.FrameSettings, http2.FrameGoAway} {
			if f, err := frames.ReadFrame(); err != nil || f.Header().Type != want {
				t.Errorf("%v, %v", f, err)
			}
		}
		if took := time.Since(begun); took != time.Hour {
			t.Error(took)
		}
		time.AfterFunc(time.Hour, func() { _ = server.Close() })
		if f, err := frames.ReadFrame(); !errors.Is(err, io.EOF) {
			t.Errorf("%v, %v: it is still open", f, err)
		}
	})
}

// chunks is a connection that is read in pieces of random length.
type chunks struct {
	net.Conn
	random *rand.Rand
	from   io.Reader
}

func (c chunks) Read(b []byte) (int, error) {
	return c.from.Read(b[:min(len(b), 1+c.random.IntN(40))])
}

func (chunks) SetReadDeadline(time.Time) error { return nil }

func TestTheNoticeStandsBetweenFrames(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		var sent bytes.Buffer
		w := http2.NewFramer(&sent, nil)
		errs := []error{w.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20})}
		for stream := uint32(1); stream < 40; stream += 2 {
			var header bytes.Buffer
			errs = append(errs, hpack.NewEncoder(&header).WriteField(hpack.HeaderField{Name: "name", Value: string(make([]byte, random.IntN(99)))}))
			cut := random.IntN(header.Len())
			errs = append(errs,
				w.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: header.Bytes()[:cut]}),
				w.WriteContinuation(stream, true, header.Bytes()[cut:]),
				w.WriteData(stream, true, make([]byte, random.IntN(300))))
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		whole := bytes.Clone(sent.Bytes())
		var got bytes.Buffer
		frames := http2.NewFramer(&got, etcdstore.Ageing(chunks{random: random, from: &sent}, 0))
		notices := 0
		for {
			f, err := frames.ReadFrame() // refuses a frame between parts of a header
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if g, ok := f.(*http2.GoAwayFrame); ok {
				if notices++; g.LastStreamID != 1<<31-1 || g.ErrCode != http2.ErrCodeNo {
					t.Errorf("seed %d: %v", seed, g)
				}
				continue
			}
			if err := frames.WriteRawFrame(f.Header().Type, f.Header().Flags, f.Header().StreamID, payload(t, f)); err != nil {
				t.Fatal(err)
			}
		}
		if notices != 1 || !bytes.Equal(got.Bytes(), whole) {
			t.Errorf("seed %d: %d notices, %d bytes of %d", seed, notices, got.Len(), len(whole))
		}
	}
}

// payload returns what follows the header of a frame.
func payload(t *testing.T, f http2.Frame) []byte {
	t.Helper()
	switch f := f.(type) {
	case *http2.HeadersFrame:
		return f.HeaderBlockFragment()
	case *http2.ContinuationFrame:
		return f.HeaderBlockFragment()
	case *http2.DataFrame:
		return f.Data()
	case *http2.SettingsFrame:
		s := f.Setting(0)
		return []byte{byte(s.ID >> 8), byte(s.ID), byte(s.Val >> 24), byte(s.Val >> 16), byte(s.Val >> 8), byte(s.Val)}
	default:
		t.Fatalf("%v was not sent", f)
		return nil
	}
}
