package server_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A server reads the files of its operator again and again, so all of that is bounded: by settings.ReadFile.
func TestTheServerReadsFilesInOneWay(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) < 20 {
		t.Fatalf("%d files, %v", len(sources), err)
	}
	unbounded := regexp.MustCompile(`os\.(ReadFile|Open|OpenFile)\(|LoadX509KeyPair|ioutil\.`)
	for _, file := range sources {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := unbounded.Find(text); found != nil {
			t.Errorf("%s uses %s: use settings.ReadFile", file, found)
		}
	}
}

// Each of these files once ended a server, or its follower.
func TestAFollowedFileMayBecomeALargeOne(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\n")
	v.turn()
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 3<<30); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(large, v.file); err != nil {
		t.Fatal(err)
	}
	v.turn()
	v.log.has(t, "3221225472 is out of range")
	write(t, v.file, "namespaces: {orders: {}, items: {}}\n")
	v.turn()
	v.log.has(t, `msg="in force: configuration" cause=changed`)
}
