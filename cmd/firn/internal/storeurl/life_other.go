//go:build !linux

package storeurl

// lifeOf has no name for the life of a file here.
func lifeOf(string) (string, error) { return "", nil }

// mounted cannot tell here whether a file is mounted by itself.
func mounted(string) (bool, error) { return false, nil }
