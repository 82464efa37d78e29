// Package servers is for tests of stores on Unix. It starts real coordination stores for tests, each on a free
// loopback port with data of its own, and stops them when the test ends.
//
// The programs come from the system's packages; scripts/need-servers installs
// them on Debian. Where one is missing the test is skipped, and with CI=true it
// fails.
package servers
