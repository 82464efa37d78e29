package rpc

import (
	"context"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// maxKept bounds the ids whose memory is kept for later answers.
const maxKept = 128 << 10

// memory is the reusable memory of an answer.
type memory struct {
	batch  issuing.Batch
	answer firnv1.GenerateResponse // only for streams
	runs   []*firnv1.Run           // as many as the largest answer has had
}

// reuse returns the memory of an earlier request, or new memory.
func (a *API) reuse() *memory {
	if m, ok := a.memory.Get().(*memory); ok {
		return m
	}
	return new(memory)
}

// recycle keeps the memory for a later request, unless it is large.
func (a *API) recycle(m *memory) {
	m.batch.Release()
	if max(cap(m.batch.IDs), cap(m.batch.Stretches), cap(m.batch.Texts), cap(m.answer.Ids), cap(m.runs)) <= maxKept {
		a.memory.Put(m)
	}
}

// maxBetween bounds the ids whose memory a stream keeps between two messages, as it may wait there.
const maxBetween = 8 << 10

// shrink drops the memory of a large message.
func (m *memory) shrink() {
	if max(cap(m.batch.IDs), cap(m.batch.Texts), cap(m.answer.Ids), cap(m.answer.Texts)) > maxBetween {
		*m = memory{runs: m.runs}
	}
}

// generate fills m's batch with what a request asks for. The error is counted.
func (a *API) generate(ctx context.Context, from *access.Caller, r *firnv1.GenerateRequest, m *memory) error {
	start := time.Now()
	count := 1
	if r.Count != nil {
		count = int(*r.Count)
	}
	err := a.issue(ctx, from, r.GetNamespace(), count, r.GetForm(), m)
	a.front.Observe(time.Since(start))
	return err
}

// issue fills m's batch.
func (a *API) issue(ctx context.Context, from *access.Caller, namespace string, count int, form firnv1.Form, m *memory) error {
	m.batch.Compact = form == firnv1.Form_FORM_RUNS
	_, err := a.front.Issue(ctx, from, issuing.Ask{Namespace: namespace, Count: count}, &m.batch)
	return err
}

// write fills m's answer from its batch.
func (m *memory) write() *firnv1.GenerateResponse {
	for len(m.runs) < len(m.batch.Stretches) {
		m.runs = append(m.runs, new(firnv1.Run))
	}
	for i, s := range m.batch.Stretches {
		write(m.runs[i], s)
	}
	m.answer.Runs = m.runs[:len(m.batch.Stretches)]
	m.answer.Ids = appendIDs(m.answer.Ids[:0], m.batch.IDs)
	m.answer.Texts = m.batch.Texts
	return &m.answer
}

func write(r *firnv1.Run, s firn.Stretch) {
	r.First, r.Count, r.Stride = int64(s.First), int32(s.Count), int64(s.Stride)
}

func appendIDs(to []int64, ids []firn.ID) []int64 {
	for _, id := range ids {
		to = append(to, int64(id))
	}
	return to
}
