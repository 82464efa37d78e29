package storeurl

import (
	"context"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
)

// Make is [Open], and creates a store in a folder first. A command creates no other stores: their
// server has them, or the first use of a SQLite file creates it.
func Make(ctx context.Context, text string) (store.Store, error) {
	if dir, ok := strings.CutPrefix(text, "file:"); ok {
		return openFolder(dir, filestore.Make)
	}
	return Open(ctx, text)
}

// fileStore adds its name to errors, and can be examined.
type fileStore struct{ *filestore.Store }

func openFolder(dir string, open func(string) (*filestore.Store, error)) (store.Store, error) {
	if dir == "" {
		return nil, urlErrorf("store file: has no folder: write file:FOLDER, as in file:/var/lib/firn")
	}
	s, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("store file:%s: %w", dir, err)
	}
	return fileStore{s}, nil
}

// Examine implements [store.Examined].
func (s fileStore) Examine(context.Context) ([]store.Finding, error) { return examineFile(s.String()) }
