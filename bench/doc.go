// Package bench compares Firn with other generators and with the least cost of any generator, such
// as a clock reading. It is never published.
//
//	go run ./bench/report      # from the repository's top
package bench
