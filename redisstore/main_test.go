package redisstore_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets eight tests run at once: they wait for clusters, replicas and Sentinels, and leave the processors idle.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
