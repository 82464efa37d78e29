// Package sql has only tests: of package sqlstore with real servers, through the drivers and settings
// that its users choose. The tests of URLs are in package storeurl.
package sql
