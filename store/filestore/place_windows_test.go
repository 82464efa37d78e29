package filestore

import "testing"

func TestAFolderOnAShareIsRefused(t *testing.T) {
	if s, err := fileSystemOf(t.TempDir()); s != (fileSystem{}) || err != nil {
		t.Errorf("a temporary folder: %v, %v", s, err)
	}
	if s, err := onDrive(`\\?\UNC\server\share\firn`); !s.network || s.name == "" || err != nil {
		t.Errorf("a folder on a share: %v, %v", s, err)
	}
}
