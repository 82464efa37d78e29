package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// An examination holds the facts about a database on another host.
type examination struct {
	durable          bool
	settings, advice string   // that durability rests on, and how they should be
	denied           []string // what the account may not do
	readOnly         bool
	follows          bool   // it also applies the writes of another server
	unseen           bool   // the account may not see whether it does
	overwritten      bool   // another server's rows replace its own, older ones too
	replays          bool   // it may apply the writes of another server, from an origin that is recorded
	others           string // schemas of the database that have the table too
	forgets          bool   // its cluster may begin again with older data
	splits           bool   // both parts of its cluster continue after a split
	servers          int    // behind the sessions
	replicas         store.Finding
}

func (e examination) findings() []store.Finding {
	return []store.Finding{
		backend.Judge("durability").When(!e.durable, store.Bad, e.settings+": a crash forgets the workers taken last", e.advice).Else(e.settings),
		backend.Judge("privileges").
			When(len(e.denied) > 0, store.Bad, "on "+Table+" the account may not "+strings.Join(e.denied, ", "), "grant it SELECT, INSERT and UPDATE").
			Else("the account may read and write " + Table),
		backend.Judge("role").
			When(e.servers > 1, store.Bad, fmt.Sprintf("its connections lead to %d servers: ids repeat if more than one takes writes, and what a replica says is old", e.servers),
				"name one primary: no balancer over several, and no name with several addresses").
			When(e.splits, store.Bad, "its cluster goes on as two stores when it is split", "turn pc.ignore_sb and pc.ignore_quorum off").
			When(e.readOnly, store.Bad, "it is a replica, or read-only", "name the primary; or turn off what makes it read-only: read_only, tx_read_only, transaction_read_only, default_transaction_read_only").
			When(e.overwritten, store.Bad, "a subscription writes another server's rows over those of "+Table+", older ones too",
				"drop the subscription, or have the other server publish other tables").
			When(e.follows, store.Doubtful, "it takes writes, and those of another server too: two primaries that both answer are two stores",
				"have all of Firn go through one of them, make the other read-only, and have them follow by GTIDs: otherwise the writes of one that is gone come back").
			When(e.replays, store.Doubtful, "this server replays another server's writes, or once did (pg_replication_origin): rows of "+Table+" may be replaced by older ones",
				"keep "+Table+" out of what is replicated to this server; drop an origin that is not used any more, by pg_replication_origin_drop").
			When(e.others != "", store.Doubtful, "the database has another store in schema "+e.others+": accounts whose search_path leads there repeat the ids of this one",
				"have all of Firn name one schema, as by ?search_path= in the URL, and rename the table in the other").
			When(e.unseen, store.Doubtful, "whether it applies the writes of another server too is unknown", "grant SELECT on performance_schema.replication_connection_status to have that checked").
			When(e.forgets, store.Doubtful, "this member was started without its recovered position (wsrep_start_position): after a loss of power its cluster may begin again, by itself, with what one member had earlier, and ids repeat",
				"start members as systemd's unit does, with the position that --wsrep-recover shows, or set pc.recovery=no in wsrep_provider_options").
			Else("a primary that takes writes"),
		e.replicas,
	}
}

// denied asks the server itself what the account may not do: roles, columns and databases may grant it. Without SELECT the
// store would not be open.
func denied(ctx context.Context, conn *sql.Conn, codes ...string) (all []string) {
	for _, statement := range []string{
		"INSERT INTO " + Table + " (k, v, rev) SELECT k, v, rev FROM " + Table + " WHERE 1 = 0",
		"UPDATE " + Table + " SET v = v, rev = rev WHERE 1 = 0",
	} {
		err := each(ctx, conn, func(*sql.Rows) error { return nil }, "EXPLAIN "+statement)
		if err != nil && slices.Contains(codes, codeOf(err)) {
			verb, _, _ := strings.Cut(statement, " ")
			all = append(all, verb)
		}
	}
	return all
}

// maxProbes bounds how many sessions are compared.
const maxProbes = 4

// behind counts the servers behind conn and further sessions.
func (s *Store) behind(ctx context.Context, conn *sql.Conn) (int, error) {
	probes := maxProbes
	if most := s.db.Stats().MaxOpenConnections; most > 0 { // leave some for other callers
		probes = min(probes, most/2)
	}
	servers := map[string]bool{}
	for n := 1; ; n++ {
		_, name, err := s.dialect.vet(ctx, s, conn)
		if err != nil {
			return 0, err
		}
		servers[name] = true
		if n >= probes {
			return len(servers), nil
		}
		another, err := s.db.Conn(ctx)
		if err != nil {
			return 0, err
		}
		defer func() { _ = another.Close() }() // keep all open, so that each is a new connection
		conn = another
	}
}

// replicas are those the primary sees that may be promoted one day.
type replicas struct {
	all     int
	waits   int    // how many of them a write waits for
	behind  int    // how many no write ever waits for
	unknown int    // how many the account may not inspect
	mixed   bool   // one may acknowledge in place of another
	setting string // the setting that makes a write wait
	advice  string // how to make a write wait for all
}

func (r replicas) finding() store.Finding {
	return backend.Judge("replicas").
		When(r.all == 0 && r.waits > 0, store.Bad, fmt.Sprintf("none connected, and writes wait for %d (%s): none is confirmed", r.waits, r.setting), "start them, or turn the setting off").
		When(r.all == 0, store.Good, "none connected", "").
		When(r.behind > 0, store.Bad, fmt.Sprintf("%d, of which %d are brought up to date afterwards: such a one, if promoted, has forgotten confirmed writes; "+
			"two primaries that both answer are two stores", r.all, r.behind), r.advice).
		When(r.unknown > 0, store.Doubtful, fmt.Sprintf("%d, and the account may not see whether writes wait for them", r.all), "grant it pg_monitor, or ask another account").
		When(r.waits < r.all, store.Doubtful, fmt.Sprintf("%d, and a write waits for %d of them (%s)", r.all, r.waits, r.setting),
			"promote none but the one that has most, as automatic failover does if configured so").
		When(r.mixed, store.Doubtful, fmt.Sprintf("%d, and another that connects by such a name acknowledges in the place of one (%s)", r.all, r.setting),
			"give each a name of its own (cluster_name), and list the names: no *").
		Else(fmt.Sprintf("%d, which have a write before it is confirmed (%s)", r.all, r.setting))
}
