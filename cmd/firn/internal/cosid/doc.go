// Package cosid answers as CosId's proxy server does, so that Java systems that use CosId
// (3.2.1 was tried) have Firn for their distributor of machine numbers and segments: by
// setting cosid.proxy.host, and nothing else. What the original keeps in the memory of
// one process is in the store here: it survives a restart, and any number of
// servers are equal.
//
// Statuses, error codes and the form of all bodies are the original's for the requests
// that its clients send, good and bad; the words of messages are Firn's. Beyond the
// original, and for safety: names and numbers have limits, a safe-guard time that is not
// above 0 is refused, and what is stable is nobody else's (package registrar).
package cosid
