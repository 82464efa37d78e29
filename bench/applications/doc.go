// Package applications has recipes for ids in an application: with database/sql, sqlx, gorm, bun
// and ent, behind net/http and gin. They are in its tests, over SQLite, and run with them. docs/applications.md
// shows them. They are in this module because they need others that no user of Firn should inherit.
package applications
