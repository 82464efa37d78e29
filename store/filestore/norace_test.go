//go:build !race

package filestore

const histories = 2000
