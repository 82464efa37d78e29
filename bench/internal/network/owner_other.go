//go:build !linux

package network

import "net"

// Without /proc nobody is known: rules then hold for all alike.
func owner(net.Addr) int { return 0 }

func listensOn(int) []string { return nil }
