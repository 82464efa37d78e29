package redisstore

// Script is how a register is written, for tests that send it as a proxy would.
var Script = compareAndSwap
