package network

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A socket is a line of /proc/net/tcp.
type socket struct {
	local  string // address
	listen bool
	inode  string
}

// sockets returns the sockets on IPv4, and those on IPv6 with IPv4 addresses.
func sockets() (all []socket) {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue // without IPv6
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || fields[0] == "sl" {
				continue
			}
			if address, ok := parse(fields[1]); ok {
				all = append(all, socket{address, fields[3] == "0A", fields[9]})
			}
		}
		_ = f.Close() // it has been read
	}
	return all
}

// parse reads an address as 0100007F:1F90; of IPv6 it takes the last four bytes.
func parse(text string) (string, bool) {
	host, port, ok := strings.Cut(text, ":")
	ip, err := hex.DecodeString(host)
	p, err2 := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || err2 != nil || len(ip) < 4 {
		return "", false
	}
	ip = ip[len(ip)-4:]
	slices.Reverse(ip)
	return net.JoinHostPort(net.IP(ip).String(), strconv.FormatUint(p, 10)), true
}

// owner returns the process that has the socket of an address: this one, or a child of it that has the socket
// itself or below it, as a PostgreSQL whose processes connect. It is 0 if no process has it.
func owner(address net.Addr) int {
	for _, s := range sockets() {
		if s.local != address.String() || s.listen || s.inode == "0" {
			continue
		}
		var below func(pid int) bool
		below = func(pid int) bool { return inodes(pid)[s.inode] || slices.ContainsFunc(children(pid), below) }
		mine := children(os.Getpid())
		for _, pid := range append(mine, os.Getpid()) {
			if inodes(pid)[s.inode] {
				return pid
			}
		}
		for _, pid := range mine {
			if below(pid) {
				return pid
			}
		}
	}
	return 0
}

// children returns the children of a process, as far as they have not ended.
func children(pid int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well-formed
	for _, name := range lists {
		list, err := os.ReadFile(name)
		if err != nil {
			continue // this thread has ended
		}
		for pid := range strings.FieldsSeq(string(list)) {
			if pid, err := strconv.Atoi(pid); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// inodes returns the sockets that a process has open.
func inodes(pid int) map[string]bool {
	all := map[string]bool{}
	open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is well-formed
	for _, name := range open {
		if target, err := os.Readlink(name); err == nil && strings.HasPrefix(target, "socket:[") {
			all[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	return all
}

// listensOn returns the addresses that a process listens on. For a process that listens on all addresses
// it adds the loopback address.
func listensOn(pid int) (addresses []string) {
	open := inodes(pid)
	for _, s := range sockets() {
		if s.listen && open[s.inode] {
			addresses = append(addresses, strings.Replace(s.local, "0.0.0.0", "127.0.0.1", 1))
		}
	}
	return addresses
}
