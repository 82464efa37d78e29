// Package doctor has the tests that make each line of firn doctor red, over real servers.
package doctor
