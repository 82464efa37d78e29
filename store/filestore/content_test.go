package filestore

import (
	"errors"
	"testing"

	"github.com/firn-id/firn/store"
)

func TestRegistersAreReadAsTheyWereWritten(t *testing.T) {
	c := content{writes: 7}
	for _, e := range []store.Entry{
		{Key: "firn/p/slot/10", Value: []byte("two\nlines\n"), Revision: 1},
		{Key: "firn/p/pool", Value: []byte{}, Revision: 1<<63 - 1},
		{Key: `firn/p/a "quoted"\ key of ü`, Value: []byte("0"), Revision: 0xabc},
		{Key: "firn/p/slot/10", Value: []byte(`"firn/p/slot/2" 0000000000000001 1`), Revision: 2},
	} {
		c = c.set(e)
	}
	read, err := decodeHead("firn/p", c.encode("firn/p"))
	if err != nil || read.writes != c.writes {
		t.Fatal(read.writes, err)
	}
	registers, err := decodeRegisters(read.text)
	if err != nil || len(registers) != 3 {
		t.Fatal(registers, err)
	}
	for i, e := range registers {
		if want := c.registers[i]; e.Key != want.Key || string(e.Value) != string(want.Value) || e.Revision != want.Revision || cap(e.Value) != len(e.Value) {
			t.Errorf("%+v was read as %+v", want, e)
		}
		one, err := findRegister(read.text, e.Key)
		if err != nil || one.Key != e.Key || string(one.Value) != string(e.Value) || one.Value == nil || one.Revision != e.Revision {
			t.Errorf("%+v was found as %+v, %v", e, one, err)
		}
	}
	for _, key := range []string{"firn/p/slot/1", "firn/p/slot/2", "", "firn/p/slot/100"} {
		if e, err := findRegister(read.text, key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%q was found as %+v, %v", key, e, err)
		}
	}
}

// Later reads use the memory of earlier ones.
func TestAValueStaysAsItWasRead(t *testing.T) {
	text := []byte("\"k\" 0000000000000001 5\nvalue\n")
	e, err := findRegister(text, "k")
	clear(text)
	if err != nil || e.Key != "k" || string(e.Value) != "value" {
		t.Errorf("%+v, %v", e, err)
	}
}

// Their checksums are right: somebody edited the files and sealed them again.
func TestMalformedRegistersAreRefused(t *testing.T) {
	const good = "\"a\" 0000000000000001 2\n{}\n"
	if _, err := decodeRegisters([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"\"a\" 0000000000000001 3\n{}\n", "\"a\" 0000000000000001 -1\n{}\n", "\"a\" 0000000000000001\n{}\n", "\"a\" 1 18446744073709551615\n{}\n",
		"a 0000000000000001 2\n{}\n", "\"a\" x 2\n{}\n", "\"a\" 0000000000000001 2\n{}", "\n", good + good, "\"b\" 0000000000000001 2\n{}\n" + good,
	} {
		if registers, err := decodeRegisters([]byte(text)); err == nil {
			t.Errorf("%q was read as %+v", text, registers)
		}
	}
	for _, text := range []string{"file a after 1 writes", "file b after 1 writes\n", "file a after x writes\n", "file a after -1 writes\n", "file a after 1\n", "after 1 writes\n", ""} {
		if c, err := decodeHead("a", seal([]byte(text))); (err == nil) != (text == "file a after 1 writes") {
			t.Errorf("%q was read as %+v, %v", text, c, err)
		}
	}
}
