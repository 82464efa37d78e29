package rpc

import (
	"context"
	"slices"
	"time"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// maxBetween bounds the ids whose memory a stream keeps between two messages, as it may wait there.
const maxBetween = 8 << 10

// shrink drops the memory of a large message, whose room was released.
func shrink(b *issuing.Batch) {
	if max(cap(b.IDs), cap(b.Texts)) > maxBetween {
		*b = issuing.Batch{}
	}
}

// generate fills a batch with what a request asks for. The error is counted.
func (a *API) generate(ctx context.Context, from *access.Caller, r *firnv1.GenerateRequest, b *issuing.Batch) error {
	start := time.Now()
	count := 1
	if r.Count != nil {
		count = int(*r.Count)
	}
	err := a.issue(ctx, from, r.GetNamespace(), count, r.GetForm(), b)
	a.front.Observe(time.Since(start))
	return err
}

// issue fills a batch.
func (a *API) issue(ctx context.Context, from *access.Caller, namespace string, count int, form firnv1.Form, b *issuing.Batch) error {
	b.Compact = form == firnv1.Form_FORM_RUNS
	_, err := a.front.Issue(ctx, from, issuing.Ask{Namespace: namespace, Count: count}, b)
	return err
}

// response returns a message with a copy of a batch, since connect may still be writing it when the batch is used again.
func response(b *issuing.Batch) *firnv1.GenerateResponse {
	answer := &firnv1.GenerateResponse{
		Ids: make([]int64, len(b.IDs)), Runs: make([]*firnv1.Run, len(b.Stretches)), Texts: slices.Clone(b.Texts),
	}
	for i, id := range b.IDs {
		answer.Ids[i] = int64(id)
	}
	runs := make([]firnv1.Run, len(b.Stretches))
	for i, s := range b.Stretches {
		r := &runs[i]
		r.First, r.Count, r.Stride = int64(s.First), int32(s.Count), int64(s.Stride)
		answer.Runs[i] = r
	}
	return answer
}
