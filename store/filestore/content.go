package filestore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
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
	writes    uint64        // made so far
	file      int           // which of the two files, 0 or 1
	registers []store.Entry // by key
	text      []byte        // the registers before they are parsed
}

// find returns where a key is, or belongs.
func (c content) find(key string) (at int, found bool) {
	return slices.BinarySearchFunc(c.registers, key, func(e store.Entry, key string) int { return strings.Compare(e.Key, key) })
}

// get returns the register of a key; without one, the zero entry.
func (c content) get(key string) store.Entry {
	if at, found := c.find(key); found {
		return c.registers[at]
	}
	return store.Entry{}
}

// set returns c with a register.
func (c content) set(e store.Entry) content {
	at, found := c.find(e.Key)
	if !found {
		c.registers = slices.Insert(c.registers, at, store.Entry{})
	}
	c.registers[at] = e
	return c
}

const heading = "firn store, sha256 of what follows: "

func (c content) encode(of string) []byte {
	size := len(of) + len("file  after 18446744073709551615 writes\n")
	for _, e := range c.registers {
		size += len(e.Key) + len(e.Value) + len(`"" 0123456789abcdef 65536`) + len("\n\n")
	}
	body := fmt.Appendf(make([]byte, 0, size), "file %s after %d writes\n", of, c.writes)
	for _, e := range c.registers {
		body = append(strconv.AppendQuote(body, e.Key), ' ')
		body = append(appendRevision(body, e.Revision), ' ')
		body = append(strconv.AppendInt(body, int64(len(e.Value)), 10), '\n')
		body = append(append(body, e.Value...), '\n')
	}
	return seal(body)
}

// appendRevision appends the 16 hexadecimal digits of a revision.
func appendRevision(dst []byte, r store.Revision) []byte {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(r))
	return hex.AppendEncode(dst, raw[:])
}

// decodeHead checks the text and reads what precedes its registers. Of two files, only the registers of the newer one
// are of use.
func decodeHead(of string, text []byte) (c content, err error) {
	body, err := unseal(text)
	if err != nil {
		return c, err
	}
	line, registers, _ := bytes.Cut(body, []byte("\n"))
	count, named := strings.CutPrefix(string(line), "file "+of+" after ")
	number, whole := strings.CutSuffix(count, " writes")
	c.writes, err = strconv.ParseUint(number, 10, 64)
	if !named || !whole || err != nil {
		return c, fmt.Errorf("it begins with %.99q: it was renamed", line)
	}
	c.text = registers
	return c, nil
}

// decodeRegisters parses the registers of a file: all slots of a pool, for instance.
func decodeRegisters(text []byte) ([]store.Entry, error) {
	all := make([]store.Entry, 0, bytes.Count(text, []byte("\n"))/2) // each has two lines, or more
	keys := string(text)                                             // the keys are parts of it
	for len(keys) > 0 {
		line, rest, _ := strings.Cut(keys, "\n")
		e, length, err := decodeLine(line)
		if err != nil || length >= uint64(len(rest)) || len(all) > 0 && e.Key <= all[len(all)-1].Key {
			return nil, notRegister(line)
		}
		e.Value = text[len(text)-len(rest):][:length:length]
		all = append(all, e)
		keys = rest[length+1:]
	}
	return all, nil
}

// findRegister returns a copy of one register without parsing the others. The error is [store.ErrNotFound] if there is none.
func findRegister(text []byte, key string) (store.Entry, error) {
	begin := []byte(strconv.Quote(key) + " ")
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		length, err := strconv.ParseUint(string(line[bytes.LastIndexByte(line, ' ')+1:]), 10, 64)
		if err != nil || length >= uint64(len(rest)) {
			return store.Entry{}, notRegister(string(line))
		}
		if bytes.HasPrefix(line, begin) {
			e, _, err := decodeLine(string(line))
			if err != nil {
				return store.Entry{}, notRegister(string(line))
			}
			e.Value = bytes.Clone(rest[:length])
			return e, nil
		}
		text = rest[length+1:]
	}
	return store.Entry{}, store.ErrNotFound
}

func notRegister(line string) error {
	return fmt.Errorf("the line %.99q is not a register, or not in its place", line)
}

// decodeLine parses the line of a register, and returns the length of its value too.
func decodeLine(line string) (e store.Entry, length uint64, err error) {
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return e, 0, err
	}
	revision, size, _ := strings.Cut(strings.TrimPrefix(line[len(quoted):], " "), " ")
	number, err := strconv.ParseUint(revision, 16, 64)
	if err != nil {
		return e, 0, err
	}
	if length, err = strconv.ParseUint(size, 10, 64); err != nil {
		return e, 0, err
	}
	e.Revision = store.Revision(number)
	e.Key, err = strconv.Unquote(quoted)
	return e, length, err
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
