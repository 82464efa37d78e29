// Package client has ids of a Firn server at hand before they are asked for.
//
//	c, err := client.New(client.Config{
//		Servers: []string{"http://10.0.0.1:7070", "http://10.0.0.2:7070"},
//		Token:   token,
//	})
//	...
//	defer c.Close()
//	orders, err := c.IDs("orders")
//	...
//	id, err := orders.Next(ctx)
//
// [Namespace.Next] takes from a buffer: some tens of nanoseconds, no allocation,
// no request. The buffer is filled in the background, one request at a time, and
// follows the demand so that it lasts for a time that you set ([Buffer.Target]). So
// long may all servers be away before a caller waits, and [Config.Wait] longer
// before one fails.
//
// The servers, over one store, are equal. The client asks the first of an order
// that it drew at random, leaves one that fails, and comes back once it answers
// again.
//
// # What is promised
//
// No id is issued twice, whatever fails: ids of an answer that came broken, late or
// to somebody who had gone are gaps. Where ids grow (kinds snowflake and segment,
// not veiled), [Namespace.Next] of one client never goes back, also when it changes
// servers. Ids in a buffer were made some time ago: of two clients one may have
// lower ids later. Where every id must be greater than all that anybody had before
// (kinds sequence and number), a buffer would break what the kind promises; Next
// refuses those with [ErrKind], and [Namespace.Take] asks a server each time.
//
// # When not to use it
//
// A Go program that can reach the store makes ids itself, with packages lease and
// segment: no server, no buffer.
package client
