// Package sql has no code, only tests: of package sqlstore against real
// servers through the drivers that its users bring, set in the ways that they
// set them. What its URLs add stands with package storeurl.
package sql
