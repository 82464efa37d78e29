package doctor

// elsewhere has the texts that the usual cases do not show: why not, the test that feeds what such a server says to the code
// that judges it, and when a case shows it all the same, over the real one. The test has some of the words.
var elsewhere = map[string]played{
	"the redo log is disabled":                                                              older("a MySQL: MariaDB has no such log"),
	"ALTER INSTANCE ENABLE INNODB REDO_LOG":                                                 older("a MySQL: MariaDB has no such log"),
	"grant PROCESS to have them counted":                                                    older("a MySQL: MariaDB shows its replicas to all"),
	"whether it applies the writes of another server too is unknown":                        older("a MySQL: MariaDB shows it to all"),
	"grant SELECT on performance_schema.replication_connection_status to have that checked": older("a MySQL: MariaDB shows it to all"),
	"rpl_semi_sync_slave_enabled ON":                                                        older("MariaDB 10.11.5"),
	"update MariaDB, or leave that off on the primary: at its start after a crash it would undo what it confirmed last": older("MariaDB 10.11.5"),

	"; but in this version not in the first moments after a restart":                         older("PostgreSQL 15.4 with a standby"),
	"update PostgreSQL to 17.5, 16.9, 15.13, 14.18, 13.21 or later":                          older("PostgreSQL 15.4 with a standby"),
	"PostgreSQL 14.%d: REINDEX and CREATE INDEX CONCURRENTLY make indexes without some rows": older("PostgreSQL 14.3"),
	"update PostgreSQL to 14.4 or later, and then REINDEX TABLE ":                            older("PostgreSQL 14.3"),
	"this version syncs a file again that could not be synced, and takes that for success":   older("PostgreSQL 10.6"),
	"update PostgreSQL to 10.7, 11.2 or later":                                               older("PostgreSQL 10.6"),

	": it goes on when its file cannot be synced, so a loss of power loses what it acknowledged since": oldRedis,
	"update to Redis 6.2 or later": oldRedis,

	" is an etcd ": oldEtcd,
	"it may lose confirmed writes when it is killed, or if it has users: upgrade to 3.4.22, 3.5.6 or later": oldEtcd,

	"put it on a disk of the machine itself, or use Redis, MySQL, PostgreSQL, etcd or ZooKeeper":                        mounts,
	"several machines may share it, but a file serves only one: ids can be issued twice":                                mounts,
	"a container's own layer is removed with the container, and counters begin again; every container has its own file": mounts,
	"on ramfs: ":                      mounts,
	"on overlay: ":                    mounts,
	"put it in a volume":              mounts,
	"on a disk that is mounted with ": options,
	": a power failure loses confirmed writes, and counters go back":                 options,
	"mount it without this option, unless the disk's cache survives a power failure": options,
}

// played is a test that plays what a server says which Debian does not have, or which not everyone may start.
type played struct {
	why, file, test string
	real            func() bool // whether a case of this run shows it over the real one
}

const (
	sqlTests  = "../../../../store/sqlstore/examine_test.go"
	fileTests = "../../internal/storeurl/filesystem_linux_test.go"
)

var (
	oldRedis = played{"needs Redis 6.0", "../../../../redisstore/bad_test.go", "TestARedisThatGoesOnAfterAFailedSyncIsBad", nil}
	oldEtcd  = played{"needs etcd 3.5.0", "../../../../etcdstore/examine_test.go", "TestVersionsThatLoseDataAreKnown", haveVersions}
	mounts   = played{"only root may mount overlay, ramfs and FUSE", fileTests, "TestAFileSystemThatIsNotALocalDiskIsReported", mayMount}
	options  = played{"only root may mount ext4 without barriers", fileTests, "TestAnUnflushedDiskIsReported", mayMount}
)

func older(needs string) played {
	return played{"needs " + needs, sqlTests, "TestWhatIsSaidOfOtherVersions", haveVersions}
}
