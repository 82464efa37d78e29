package doctor

// elsewhere has the texts that none of the cases shows, and why: the servers of Debian do not make them true. Where it says
// by hand, a real server did once; other tests play what such a server says.
var elsewhere = map[string]string{
	"INFO does not show maxmemory-policy":               managed,
	"make sure that it is noeviction or a volatile one": managed,

	"the certificate has expired: clients refuse it": "said while a server runs: at its start this is an error",

	"the redo log is disabled":              needsMySQL,
	"ALTER INSTANCE ENABLE INNODB REDO_LOG": needsMySQL,
	"grant PROCESS to have them counted":    needsMySQL,
	"pc.ignore_sb = true":                   "not printed: it is looked for in what Galera says",
	"pc.recovery = true":                    "not printed: it is looked for in what Galera says",
	"pc.ignore_quorum = true":               "not printed: it is looked for in what Galera says",
	"update MariaDB, or leave that off on the primary: at its start after a crash it would undo what it confirmed last": "by hand, with MariaDB 10.11.5",

	"; but in this version not in the first moments after a restart": "by hand, with PostgreSQL 15.4 and a standby",
	"update PostgreSQL to 17.5, 16.9, 15.13, 14.18, 13.21 or later":  "by hand, with PostgreSQL 15.4 and a standby",

	" is an etcd ": oldEtcd,
	"it may lose confirmed writes when it is killed, or if it has users: upgrade to 3.4.22, 3.5.6 or later": oldEtcd,

	"put it on a disk of the machine itself, or use Redis, MySQL, PostgreSQL, etcd or ZooKeeper":                        mounts,
	"its locks do not hold between machines, and ids can be issued twice":                                               "needs a network file system",
	"several machines may share it, but a file serves only one: ids can be issued twice":                                mounts,
	"a container's own layer is removed with the container, and counters begin again; every container has its own file": mounts,
	"put it in a volume":                                                             mounts,
	"on a disk that is mounted with ":                                                mounts,
	": a power failure loses confirmed writes, and counters go back":                 mounts,
	"mount it without this option, unless the disk's cache survives a power failure": mounts,
}

const (
	managed    = "no Redis hides it, but managed servers may"
	needsMySQL = "needs a MySQL: MariaDB has no such thing, or shows it to all"
	oldEtcd    = "by hand, with etcd 3.5.0"
	mounts     = "by hand, with mounts of overlay, ramfs, FUSE, and ext4 without barriers: only root may mount"
)
