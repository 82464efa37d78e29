module github.com/firn-id/firn/bench

go 1.25.0

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/firn-id/firn v0.1.0
	github.com/google/uuid v1.6.0
	github.com/oklog/ulid/v2 v2.1.2
	github.com/rs/xid v1.6.0
	github.com/sony/sonyflake/v2 v2.2.0
)
