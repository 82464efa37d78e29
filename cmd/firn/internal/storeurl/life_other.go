//go:build !linux

package storeurl

// lifeOf cannot name the life of a file here.
func lifeOf(string) (string, error) { return "", nil }

// mounted cannot detect a mounted file here.
func mounted(string) (bool, error) { return false, nil }
