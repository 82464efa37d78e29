// Package applications has recipes for ids in an application: with database/sql, sqlx, pgx, gorm,
// bun and ent, behind net/http and gin. They are in its tests, over SQLite, and PostgreSQL for pgx, and run with them.
// docs/applications.md shows them. They are in this module because they need others that no user of Firn should inherit.
package applications
