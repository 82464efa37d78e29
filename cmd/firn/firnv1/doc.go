// Package firnv1 is the messages of Firn's issuing service, and its client and server
// for google.golang.org/grpc; the subpackage firnv1connect has those for Connect. All
// but this file is made of proto/firn/v1/id.proto, with make proto.
//
// A Go program that wants ids from a server may also speak HTTP and JSON, or the Redis
// protocol; one that wants them without a server uses the library, which this package
// is no part of.
package firnv1
