//go:build race

package filestore

const histories = 100 // it makes each as slow as twenty
