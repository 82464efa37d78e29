// Package cosid implements the HTTP interface of CosId's proxy server. Java systems that use
// CosId (tested with 3.2.1) get machine numbers and segments from Firn by setting
// cosid.proxy.host, and nothing else. The original keeps its state in the memory of one
// process. Firn keeps it in the store: it survives a restart, and several servers can share it.
//
// For requests that CosId's clients send, valid or not, the status, the error code and the
// form of the body are those of the original; message texts are Firn's. There are additional
// checks, for safety: names and numbers have limits, a safe-guard time must be above 0, and the
// number of a stable instance is never assigned to another (package registrar).
package cosid
