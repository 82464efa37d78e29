package filestore

// Lock locks a file as a store locks its lock file.
var Lock = lock
