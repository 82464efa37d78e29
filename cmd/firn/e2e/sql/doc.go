// Package sql has no code, only tests: of package sqlstore against real servers, through the drivers
// that its users choose, with their usual settings. Tests of the URLs are in package storeurl.
package sql
