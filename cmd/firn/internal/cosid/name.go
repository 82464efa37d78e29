package cosid

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/firn-id/firn/store"
)

const (
	// maxRawName is how long a namespace, name or instance of a client may be, in bytes.
	maxRawName = 255
	// escapedPrefix begins the names of those that are no names for Firn as they are.
	escapedPrefix = "cosid--"
	hashedPrefix  = escapedPrefix + "-"
)

// FirnName returns the name under which Firn keeps what CosId calls by namespace and
// name, or by namespace alone for machines: "shop", "orders" are shop.orders, as in
// CosId itself. If that has other characters than letters, digits, dots, dashes and
// underscores, they are escaped: orders@2026-11 of shop, which CosId makes of counters
// that restart each month, is cosid--shop.orders_402026-11. One that is longer than
// 64 bytes then is cosid--- and a hash. Different names stay different.
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
