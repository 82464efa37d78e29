package zkstore_test

import (
	"encoding/binary"
	"io"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn/store/storetest/servers"
)

// The codes of requests that tests intercept.
const (
	getData = 4
	setData = 5
	multi   = 14
)

// A proxy stands between a store and its server, and sees the store's requests.
type proxy struct {
	*servers.Proxy
	hold atomic.Pointer[func(op int32)]
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	p := &proxy{}
	p.Proxy = servers.NewProxy(t, server, p.forward)
	return p
}

// forward passes requests on, one by one.
func (p *proxy) forward(server io.Writer, client io.Reader) {
	for first := true; ; first = false {
		var size [4]byte
		if _, err := io.ReadFull(client, size[:]); err != nil {
			return
		}
		request := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(client, request); err != nil {
			return
		}
		// The first request makes the session and has no code.
		if hold := p.hold.Load(); hold != nil && !first {
			(*hold)(int32(binary.BigEndian.Uint32(request[4:])))
		}
		if _, err := server.Write(append(size[:], request...)); err != nil {
			return
		}
	}
}

// setHold makes hold see each request before it goes on, so that it can delay it; nil: no delay.
func (p *proxy) setHold(hold func(op int32)) {
	if hold == nil {
		p.hold.Store(nil)
		return
	}
	p.hold.Store(&hold)
}
