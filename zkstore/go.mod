module github.com/firn-id/firn/zkstore

go 1.25.0

require (
	github.com/firn-id/firn v0.1.0
	github.com/go-zookeeper/zk v1.0.4
)
