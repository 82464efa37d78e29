// Package client prefetches ids from Firn servers.
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
// no request. The buffer is filled in the background, one request at a time. Its
// size follows the demand, so that it lasts for a time that you set
// ([Buffer.Target]). If all servers are away for that long, callers start to wait;
// after another [Config.Wait] they fail.
//
// The servers share one store and are equal. The client puts them in a random order
// and asks the first. It leaves a server that fails, and returns to it once it
// answers again.
//
// # What is promised
//
// No id is issued twice, whatever fails: the ids of an answer that was broken, late
// or no longer wanted become gaps. Where ids grow (kinds snowflake and segment,
// not veiled), [Namespace.Next] of one client never goes back, even when it changes
// servers. Ids in a buffer were made some time ago, so one client may issue lower
// ids than another did before. The kinds sequence and number promise that every id
// is greater than all ids issued before it, anywhere; a buffer would break that.
// Next refuses them with [ErrKind]; [Namespace.Fetch] asks a server each time.
//
// # When not to use it
//
// A Go program that can reach the store makes ids itself, with packages lease and
// segment: no server, no buffer.
package client
