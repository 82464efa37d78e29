//go:build !linux

package doctor

func mayMount() bool { return false }
