// Package firnv1 has the messages of Firn's id service, and its client and server for
// google.golang.org/grpc. The subpackage firnv1connect has the client and server for Connect.
// All files except this one are generated from proto/firn/v1/id.proto by make proto.
//
// A Go program can also get ids from a server over HTTP and JSON or over the Redis protocol. To
// generate ids without a server, use the library; this package is not part of it.
package firnv1
