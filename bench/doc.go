// Package bench measures Firn beside other generators and beside the floors
// that any generator stands on. It is never published.
//
//	go run ./bench/report      # from the repository's top: five runs, medians, a table
//	go run ./bench/report segments
package bench
