package cosid

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
)

const (
	// maxRawName bounds a namespace, name or instance in a request, in bytes.
	maxRawName = 255
	// escapedPrefix marks a name that had to be escaped, hashedPrefix one that had to be hashed.
	escapedPrefix = "cosid--"
	hashedPrefix  = escapedPrefix + "-"
)

// FirnName returns Firn's name for a namespace and a name of CosId, or for a namespace alone
// (machines): "shop", "orders" become shop.orders, as in CosId itself. Characters other than
// letters, digits, dots, dashes and underscores are escaped: orders@2026-11 of shop, CosId's
// name of a counter that restarts each month, becomes cosid--shop.orders_402026-11. If the
// result is longer than 64 bytes, the name is cosid--- and a hash. Different names stay
// different.
func FirnName(parts ...string) string {
	name := strings.Join(parts, ".")
	if !strings.HasPrefix(name, escapedPrefix) && store.CheckName("", name) == nil {
		return name
	}
	var b strings.Builder
	b.WriteString(escapedPrefix)
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02X", c)
		}
	}
	if escaped := b.String(); store.CheckName("", escaped) == nil {
		return escaped
	}
	sum := sha256.Sum256([]byte(name))
	return hashedPrefix + hex.EncodeToString(sum[:28])
}
