package decode

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn"
)

// foreigns parse the encodings of bwmarrin/snowflake, which are only read: their texts often are texts of Firn's own
// encodings too, but of other ids.
var foreigns = map[string]func(text string) (firn.ID, error){
	"bwmarrin32": inDigits("bwmarrin32", "ybndrfg8ejkmcpqxot1uwisza345h769"),
	"bwmarrin58": inDigits("bwmarrin58", "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"),
	"bwmarrin64": func(text string) (firn.ID, error) { // of the decimal text
		decimal, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return 0, firn.NewSyntaxError("bwmarrin64 id", text, "it is not base64 with padding")
		}
		return firn.ParseID(string(decimal))
	},
}

// Foreign returns the names of the encodings that are only read.
func Foreign() []string { return slices.Sorted(maps.Keys(foreigns)) }

// inDigits returns the function that parses a number in these digits.
func inDigits(name, digits string) func(text string) (firn.ID, error) {
	return func(text string) (firn.ID, error) {
		if text == "" {
			return 0, firn.NewSyntaxError(name+" id", text, "it is empty")
		}
		id, base := firn.ID(0), firn.ID(len(digits))
		for i := range len(text) {
			digit := firn.ID(strings.IndexByte(digits, text[i]))
			switch {
			case digit < 0:
				return 0, firn.NewSyntaxError(name+" id", text, fmt.Sprintf("%q is not one of its digits, %s", text[i], digits))
			case id > (firn.MaxID-digit)/base:
				return 0, firn.NewSyntaxError(name+" id", text, "it is above 9223372036854775807")
			}
			id = id*base + digit
		}
		return id, nil
	}
}
