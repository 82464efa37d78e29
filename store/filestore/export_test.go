package filestore

// Lock locks a file as a store locks its lock file.
var Lock = lock

// OverlayRoot reports whether the root is an overlay.
var OverlayRoot = overlayRoot

// OwnProcesses is ownProcesses.
var OwnProcesses = ownProcesses
