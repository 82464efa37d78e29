package zkstore_test

import (
	"context"
	"os"
	"testing"

	"github.com/firn-id/firn/store/storetest/servers"
)

func TestALifeIsAnEpochOfTheEnsemble(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t, servers.Ensemble(t)...)
	life := func(key string) string {
		t.Helper()
		e, err := open(t, "zookeeper://"+server.Addr()).CompareAndSwap(context.Background(), key, 0, []byte("v"))
		if err != nil || e.Life == "" {
			t.Fatalf("life %q, %v", e.Life, err)
		}
		return e.Life
	}
	before := life("a")
	if other := life("b"); other != before {
		t.Errorf("two writes in a row are of the lives %q and %q", before, other)
	}
	server.Kill()
	if err := os.CopyFS(server.Path("copy"), os.DirFS(server.Path("data"))); err != nil {
		t.Fatal(err)
	}
	server.Restart()
	life("c")
	server.Kill()
	if err := os.RemoveAll(server.Path("data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(server.Path("copy"), server.Path("data")); err != nil {
		t.Fatal(err)
	}
	server.Restart()
	if restored := life("c"); restored == before {
		t.Errorf("an older copy that was put back is in the life %q, as it was before", restored)
	}
}
