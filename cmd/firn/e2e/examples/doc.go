// Package examples shows the library in programs that need more than the
// standard library, here a SQL driver: see its tests.
package examples
