// Package e2e groups the end-to-end tests of the library over real stores: leases and
// segments, sequences, and examples that need a SQL driver. Each folder is a package of
// tests only. The tests of the command and the server as processes are in cmd/firn.
package e2e
