//go:build !linux

package storeurl

import "errors"

func mountBeside(string) error { return errors.ErrUnsupported }
