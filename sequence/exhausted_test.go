package sequence_test

import (
	"errors"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store/memstore"
)

// TestAnExhaustedErrorSaysWhatHelps: a greater Max does nothing for a block, nor where it is
// the greatest there is.
func TestAnExhaustedErrorSaysWhatHelps(t *testing.T) {
	const ofAll = "raise Max (at most 9223372036854775807), unless a veil ends there, or use another name"
	for _, c := range []struct {
		max, used firn.ID
		n         int
		block     int64
		want      string
	}{
		{100, 98, 3, 0, "2 ids left up to 100, not 3: ask for fewer, or " + ofAll},
		{100, 100, 1, 0, "0 ids left up to 100, not 1: " + ofAll},
		{firn.MaxID, firn.MaxID - 2, 3, 0, "2 ids left up to 9223372036854775807, not 3: ask for fewer, or use another name"},
		{firn.MaxID, firn.MaxID, 1, 0, "0 ids left up to 9223372036854775807, not 1: use another name"},
		{100, 58, 3, 10, "1 ids left up to 59, where a block of 10 ends, not 3: ask for fewer, or go on in a later block"},
		{100, 59, 1, 10, "0 ids left up to 59, where a block of 10 ends, not 1: go on in a later block"},
		{100, 59, 1, 1, "0 ids left up to 59, where a block of 1 ends, not 1: go on in a later block"},
		{59, 59, 1, 10, "0 ids left up to 59, not 1: " + ofAll}, // there is no later one
		{55, 55, 1, 10, "0 ids left up to 55, not 1: " + ofAll}, // Max cuts the block off
		{firn.MaxID, firn.MaxID, 1, 10, "0 ids left up to 9223372036854775807, not 1: use another name"},
	} {
		txn := open(t, memstore.New(nil), sequence.Config{Max: c.max})
		if err := txn.Raise(background, c.used); err != nil {
			t.Fatal(err)
		}
		var err error
		if c.block > 0 {
			_, err = txn.ReserveIn(background, c.n, c.used, c.block)
		} else {
			_, err = txn.Reserve(background, c.n)
		}
		if !errors.Is(err, sequence.ErrExhausted) || err.Error() != `sequence "txn" has `+c.want {
			t.Errorf("%v\nwant: %s", err, c.want)
		}
	}
}

func TestASequenceGoesOnWithAGreaterMax(t *testing.T) {
	s := memstore.New(nil)
	if err := open(t, s, sequence.Config{Max: 100}).Raise(background, 100); err != nil {
		t.Fatal(err)
	}
	want(t, open(t, s, sequence.Config{Max: 200}), 101)
}

func TestAMistakeNamesThePackageAndTheField(t *testing.T) {
	_, err := sequence.New(sequence.Config{Store: memstore.New(nil), Max: -1, Timeout: -1})
	const want = "sequence: Config.Max: last id -1 is out of range: 1 to 9223372036854775807 are allowed (ids of a sequence)\n" +
		"sequence: Config.Timeout: timeout -1ns is out of range: 1ms to 24h0m0s are allowed"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
