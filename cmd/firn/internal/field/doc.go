// Package field holds the tests of leases over real stores with real faults:
// servers killed, stopped, wiped and set back under running holders.
package field
