package filestore

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/firn-id/firn/store"
)

// Home returns the folder of the user's own store on this machine: firn, in the state folder of the XDG
// base directory specification, $XDG_STATE_HOME or ~/.local/state; on Windows in %LocalAppData%, which
// does not follow the user to other machines. The command and lease.OnThisMachine use it, and so share
// their pools.
//
// It reads the environment although it is a library: the environment alone names the user's folders, as
// for [os.UserHomeDir], and two programs that found the folder in different ways would have two stores.
//
// The error is [store.ErrRefused] where that would be unsafe: in a Kubernetes pod, because each pod
// would have its own store; for a user without a home directory; and if the folder holds a SQLite file
// of Firn, which is a different store.
func Home() (string, error) {
	// A login in a pod (su, cron, ssh) has no such variable.
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" || exists("/var/run/secrets/kubernetes.io") {
		return "", fmt.Errorf("filestore: %w: in Kubernetes each pod would have a store of its own, and pods repeat each other's ids: "+
			"use one that all of them reach (Redis, MySQL, PostgreSQL, etcd or ZooKeeper)", store.ErrRefused)
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the specification says to ignore a relative one
		folder, below := os.UserHomeDir, filepath.Join(".local", "state")
		if runtime.GOOS == "windows" {
			folder, below = os.UserCacheDir, ""
		}
		home, err := folder()
		if err == nil && !filepath.IsAbs(home) {
			err = fmt.Errorf("%q is not an absolute path", home)
		}
		if err != nil { // a folder shared by all users would make them share workers
			return "", fmt.Errorf("filestore: %w: no home directory for the user's store: %w: set XDG_STATE_HOME, or name a folder", store.ErrRefused, err)
		}
		state = filepath.Join(home, below)
	}
	dir := filepath.Join(state, "firn")
	if old := filepath.Join(dir, "firn.db"); exists(old) && !exists(filepath.Join(dir, lockName)) {
		return "", fmt.Errorf("filestore: %w: %s is a SQLite store, whose ids a new store beside it would repeat: use sqlite:%[2]s, or move it away once no program uses it", store.ErrRefused, old)
	}
	return dir, nil
}

// InContainer reports whether this process seems to run in a container, whose files others cannot see:
// by the marks of Docker, Podman and systemd, by the variable that systemd's and LXC's containers have, because
// the root is an overlay, or because it has process ids of its own, as containerd and other runtimes make it without
// leaving a mark.
func InContainer() bool {
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // only on Linux
	pids, _ := os.Readlink("/proc/self/ns/pid")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return os.Getenv("container") != "" || exists("/.dockerenv") || exists("/run/.containerenv") || exists("/run/systemd/container") ||
		overlayRoot(string(mounts)) || ownProcesses(pids, string(kernel))
}

// ownProcesses reports whether process ids are counted apart from the machine's, by the link of pid_namespaces(7). The
// machine's namespace has one number in all kernels since 3.8 (PROC_PID_INIT_INO). Each distribution of the Windows
// Subsystem for Linux has a namespace of its own, which lasts as a machine does.
func ownProcesses(namespace, kernel string) bool {
	return namespace != "" && namespace != "pid:[4026531836]" && !strings.Contains(kernel, "microsoft")
}

// overlayRoot reports whether the root is an overlay, by the text of proc_pid_mountinfo(5).
func overlayRoot(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		mount, source, _ := strings.Cut(line, " - ")
		if at := strings.Fields(mount); len(at) > 4 && at[4] == "/" && strings.HasPrefix(source, "overlay ") {
			return true
		}
	}
	return false
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
