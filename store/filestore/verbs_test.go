package filestore_test

import "github.com/firn-id/firn/store/filestore"

// The package has the verbs of docs/decisions/0011.
var (
	_ func(dir string) (*filestore.Store, error) = filestore.Open
	_ func(dir string) (*filestore.Store, error) = filestore.Create
)
