package client

import "time"

// Hooks are called as things happen, for metrics. They run concurrently, in calls of
// Next and Fetch and in the background. They must return soon and must not call
// Close. No hook is called for a buffered id: [Client.State] counts those.
type Hooks struct {
	// Request is called after each request to a server.
	Request func(Request)
	// Server is called when a server is left (err says why) and when it is back
	// (err is nil).
	Server func(server string, err error)
	// Waited is called when a call of Next or Fill that found too few ids in the
	// buffer has ended. Err is what it returned.
	Waited func(namespace string, waited time.Duration, err error)
}

// A Request is one request to a server, answered or not.
type Request struct {
	Server    string
	Namespace string
	Count     int // ids asked for; 0 for a question about the namespace
	Took      time.Duration
	Err       error // nil if the request brought what it asked for
}
