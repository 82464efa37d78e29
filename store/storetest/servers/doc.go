// Package servers is for tests of stores on Unix. It starts real coordination stores, each on a free
// loopback port with its own data, and stops them when the test ends.
//
// The programs come from the system's packages; scripts/need-servers installs them on Debian. Where one
// is missing the test is skipped, and with CI=true it fails.
package servers
