package storeurl

import (
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/store"
)

// named returns an error if a URL leaves host, port or database to the environment or the user: processes with one URL must
// have one store. So does one that leaves it the schema: options may set search_path. A service of libpq may name what the URL
// does not set. The driver made cfg of the URL.
func named(text string, cfg *pgx.ConnConfig) error {
	set := postgresSettings(text)
	_, service := set["service"]
	host, hasHost := set["host"]
	database, hasDatabase := set["database"]
	_, hasPort := set["port"]
	var missing []string
	// An empty setting overrides the service's, and an empty host in a list is the local socket.
	if (hasHost || !service) && slices.Contains(strings.Split(host, ","), "") {
		missing = append(missing, "no host")
	}
	if (hasDatabase || !service) && database == "" {
		missing = append(missing, "no database")
	}
	if len(missing) > 0 {
		return urlErrorf("%w: it names %s: write postgres://USER:PASSWORD@HOST/DATABASE", store.ErrRefused, strings.Join(missing, " and "))
	}
	fromEnvironment := cfg.Port != 5432 || slices.ContainsFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Port != 5432 })
	if !hasPort && !service && fromEnvironment {
		return urlErrorf("%w: it names no port, and PGPORT or PGSERVICE sets another than 5432: name the port in the URL", store.ErrRefused)
	}
	for _, key := range []string{"options", "search_path", "role"} {
		if _, ok := set[key]; !ok && !service && cfg.RuntimeParams[key] != "" {
			return urlErrorf("%w: PGOPTIONS or PGSERVICE sets %s (%s), with which it may be another store: unset them, or write %s in the URL", store.ErrRefused, key, cfg.RuntimeParams[key], key)
		}
	}
	return nil
}

// postgresSettings returns what a URL sets, of user and password only what is in the query. It splits a URL as the driver and
// libpq do, which net/url does not, and assumes that the driver accepts it.
func postgresSettings(text string) map[string]string {
	_, rest, _ := strings.Cut(text, "://")
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		rest = rest[i+1:]
	}
	hosts, ports, rest := postgresHosts(rest)
	path, query, _ := strings.Cut(rest, "?")
	set := make(map[string]string)
	for key, value := range map[string]string{"host": hosts, "port": ports, "database": strings.TrimPrefix(path, "/")} {
		if value != "" {
			set[key] = decoded(value)
		}
	}
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key = decoded(key); key == "dbname" {
			key = "database"
		}
		set[key] = decoded(value)
	}
	return set
}

// postgresHosts splits HOST:PORT,HOST:PORT/... into a list of hosts, one of ports that is as long, and the rest.
func postgresHosts(rest string) (hosts, ports, path string) {
	for {
		if host, after, ok := strings.Cut(rest, "]"); ok && strings.HasPrefix(host, "[") { // an IPv6 address
			hosts, rest = hosts+host[1:], after
		} else {
			end := strings.IndexAny(rest+"/", ":/?,")
			hosts, rest = hosts+rest[:end], rest[end:]
		}
		if strings.HasPrefix(rest, ":") {
			end := strings.IndexAny(rest+"/", "/?,")
			ports, rest = ports+rest[1:end], rest[end:]
		}
		if !strings.HasPrefix(rest, ",") {
			return hosts, ports, rest
		}
		hosts, ports, rest = hosts+",", ports+",", rest[1:]
	}
}

// decoded undoes the escapes of a part of a URL. The driver has refused those that are not valid.
func decoded(part string) string {
	text, _ := url.PathUnescape(strings.Trim(part, " "))
	return text
}
