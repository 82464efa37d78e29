package etcdstore

// OpenBy is Open with another dialer.
var OpenBy = openBy

// Ageing is ageing.
var Ageing = ageing
