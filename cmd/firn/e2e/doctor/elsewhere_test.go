package doctor

// elsewhere has the texts that none of the cases shows: why, and the test that feeds what such a server says to the code that
// judges it. That test has some of the words.
var elsewhere = map[string]played{
	"INFO does not show maxmemory-policy":               managed,
	"make sure that it is noeviction or a volatile one": managed,

	"the certificate has expired: clients refuse it": {"a server says it of the files that it has: at its start this is an error", "../../internal/server/tls_test.go", "TestACertificateThatExpiresInForceIsLogged"},

	"the redo log is disabled":              needsMySQL,
	"ALTER INSTANCE ENABLE INNODB REDO_LOG": needsMySQL,
	"grant PROCESS to have them counted":    needsMySQL,
	"rpl_semi_sync_slave_enabled ON":        version("MariaDB 10.11.5"),
	"update MariaDB, or leave that off on the primary: at its start after a crash it would undo what it confirmed last": version("MariaDB 10.11.5"),

	"; but in this version not in the first moments after a restart":                         version("PostgreSQL 15.4 with a standby"),
	"update PostgreSQL to 17.5, 16.9, 15.13, 14.18, 13.21 or later":                          version("PostgreSQL 15.4 with a standby"),
	"PostgreSQL 14.%d: REINDEX and CREATE INDEX CONCURRENTLY make indexes without some rows": version("PostgreSQL 14.3"),
	"update PostgreSQL to 14.4 or later, and then REINDEX TABLE ":                            version("PostgreSQL 14.3"),
	"this version syncs a file again that could not be synced, and takes that for success":   version("PostgreSQL 10.6"),
	"update PostgreSQL to 10.7, 11.2 or later":                                               version("PostgreSQL 10.6"),

	" is an etcd ": oldEtcd,
	"it may lose confirmed writes when it is killed, or if it has users: upgrade to 3.4.22, 3.5.6 or later": oldEtcd,

	"put it on a disk of the machine itself, or use Redis, MySQL, PostgreSQL, etcd or ZooKeeper":                        mounts,
	"its locks do not hold between machines, and ids can be issued twice":                                               mounts,
	"several machines may share it, but a file serves only one: ids can be issued twice":                                mounts,
	"a container's own layer is removed with the container, and counters begin again; every container has its own file": mounts,
	"on ramfs: ":                      mounts,
	"on overlay: ":                    mounts,
	"put it in a volume":              mounts,
	"on a disk that is mounted with ": options,
	": a power failure loses confirmed writes, and counters go back":                 options,
	"mount it without this option, unless the disk's cache survives a power failure": options,
}

// played is a test that plays what a server says which Debian does not have.
type played struct{ why, file, test string }

const sqlTests = "../../../../store/sqlstore/examine_test.go"

var (
	managed    = played{"no Redis hides it, but managed servers may", "../../../../redisstore/bad_test.go", "TestAServerThatHidesWhatItEvictsIsDoubtful"}
	needsMySQL = played{"needs a MySQL: MariaDB has no such thing, or shows it to all", sqlTests, "TestWhatIsSaidOfOtherVersions"}
	oldEtcd    = played{"needs etcd 3.5.0", "../../../../etcdstore/examine_test.go", "TestVersionsThatLoseDataAreKnown"}
	mounts     = played{"needs mounts of overlay, FUSE, and NFS: only root may mount", files, "TestAFileSystemThatIsNotALocalDiskIsReported"}
	options    = played{"needs ext4 without barriers: only root may mount", files, "TestAnUnflushedDiskIsReported"}
)

const files = "../../internal/storeurl/filesystem_linux_test.go"

func version(of string) played {
	return played{"needs " + of, sqlTests, "TestWhatIsSaidOfOtherVersions"}
}
