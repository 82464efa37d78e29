package storeurl

import (
	"context"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
)

// checkPath refuses an empty path and one that begins with ~. Shells expand ~ only at the beginning of a word, and
// the home of a service is not the user's.
func checkPath(scheme, path, what, example string) error {
	switch {
	case path == "":
		return urlErrorf("store %s: has no %s: write %[1]s:%[3]s, as in %[1]s:%[4]s", scheme, strings.ToLower(what), what, example)
	case path[0] == '~':
		return urlErrorf("store %s:%s: ~ is not expanded: write the whole path, as in %[1]s:$HOME/firn in a shell; a path that begins with ~ is %[1]s:./%[2]s", scheme, path)
	}
	return nil
}

// folder opens the store in a folder. If makes is set, it creates a missing one.
func folder(_ context.Context, dir string, makes bool) (store.Store, error) {
	if err := checkPath("file", dir, "FOLDER", "/var/lib/firn"); err != nil {
		return nil, err
	}
	open := filestore.Open
	if makes {
		open = filestore.Create
	}
	s, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("store file:%s: %w", dir, err)
	}
	return examined{s, func(context.Context) ([]store.Finding, error) { return examineFile(dir) }}, nil
}
