package filestore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/store"
)

// A content is what one file holds, for instance
//
//	firn store, sha256 of what follows: 9f86…
//	file firn/default after 12 writes
//	"firn/default/pool" 0f3a9b… 61
//	{"layout":"41/0/10/12",…}
//
// with the key, revision and length of each register, and its value.
type content struct {
	writes    uint64 // made so far
	file      int    // which of the two files, 0 or 1
	registers map[string]store.Entry
}

const heading = "firn store, sha256 of what follows: "

func (c content) encode(of string) []byte {
	var body bytes.Buffer
	fmt.Fprintf(&body, "file %s after %d writes\n", of, c.writes)
	for _, key := range slices.Sorted(maps.Keys(c.registers)) {
		e := c.registers[key]
		fmt.Fprintf(&body, "%s %016x %d\n%s\n", strconv.Quote(key), uint64(e.Revision), len(e.Value), e.Value)
	}
	return seal(body.Bytes())
}

// decode parses the text that encode writes for the registers of a family.
func decode(of string, text []byte) (content, error) {
	c := content{registers: map[string]store.Entry{}}
	body, err := unseal(text)
	if err != nil {
		return c, err
	}
	line, rest, _ := bytes.Cut(body, []byte("\n"))
	var name string
	if i := strings.LastIndex(string(line), " after "); i >= 0 && bytes.HasPrefix(line, []byte("file ")) {
		name = string(line[len("file "):i])
		_, err = fmt.Sscanf(string(line[i:]), " after %d writes", &c.writes)
	}
	if err != nil || name != of {
		return c, fmt.Errorf("it begins with %.99q: it was renamed", line)
	}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		quoted, err := strconv.QuotedPrefix(string(line))
		var revision uint64
		var length int
		if err == nil {
			_, err = fmt.Sscanf(string(line[len(quoted):]), " %x %d", &revision, &length)
		}
		if err != nil || length < 0 || length >= len(rest) {
			return c, fmt.Errorf("the line %.99q is not a register", line)
		}
		key, err := strconv.Unquote(quoted)
		if err != nil {
			return c, err
		}
		c.registers[key] = store.Entry{Key: key, Value: rest[:length:length], Revision: store.Revision(revision)}
		rest = rest[length+1:]
	}
	return c, nil
}

// seal puts a checksum before a text.
func seal(body []byte) []byte {
	sum := sha256.Sum256(body)
	return slices.Concat([]byte(heading), []byte(hex.EncodeToString(sum[:])), []byte("\n"), body)
}

func unseal(text []byte) ([]byte, error) {
	line, body, _ := bytes.Cut(text, []byte("\n"))
	if !bytes.HasPrefix(line, []byte(heading)) {
		return nil, errors.New("it was not written by Firn")
	}
	if sum := sha256.Sum256(body); string(line[len(heading):]) != hex.EncodeToString(sum[:]) {
		return nil, errors.New("its checksum does not match: it is damaged, or was edited")
	}
	return body, nil
}

// maxFamily keeps a file name, three characters for each of the family's, within file systems' limits.
const maxFamily = 72

// family returns the group of registers that share files, which is the beginning of a key: a pool
// ("firn/orders" for "firn/orders/slot/3"), or all counters ("firn/counter"
// for "firn/counter:orders").
func family(key string) string {
	parts := strings.SplitN(key, "/", 3)
	of := parts[0]
	switch kind, _, counter := strings.Cut(parts[min(1, len(parts)-1)], ":"); {
	case len(parts) == 3:
		of += "/" + parts[1]
	case len(parts) == 2 && counter:
		of += "/" + kind
	case len(parts) == 1:
		of = ""
	}
	if len(of) > maxFamily {
		return ""
	}
	return of
}

// namePrefix keeps file names from being empty, hidden or a Windows device (con).
const namePrefix = "registers-"

// fileName returns the name of one of the two files of a family.
func fileName(of string, file int) string { return escape(of) + "." + strconv.Itoa(file) }

// familiesOf returns the families of file names, each once.
func familiesOf(names []string) (list []string) {
	for _, name := range names {
		if base, _, ok := strings.Cut(name, "."); ok {
			if of, ok := unescape(base); ok && !slices.Contains(list, of) {
				list = append(list, of)
			}
		}
	}
	return list
}

// escape makes a file name that stays distinct on every file system, even where names are
// case-insensitive.
func escape(of string) string {
	var b strings.Builder
	b.WriteString(namePrefix)
	for _, c := range []byte(of) {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

// unescape returns the family of a file name; false: it is a different file.
func unescape(name string) (family string, ok bool) {
	family, err := url.PathUnescape(strings.TrimPrefix(name, namePrefix))
	return family, err == nil && escape(family) == name
}
