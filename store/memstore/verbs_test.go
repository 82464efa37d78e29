package memstore_test

import "github.com/firn-id/firn/store/memstore"

// The package has the verbs of docs/decisions/0011.
var _ func(random func() uint64) *memstore.Store = memstore.New
