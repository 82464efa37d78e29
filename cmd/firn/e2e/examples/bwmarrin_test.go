package examples_test

import (
	"fmt"
	"strings"

	"github.com/firn-id/firn"
)

// Base 58 and base 32 of bwmarrin/snowflake have other digits: Firn reads them without an error, as other ids.
const (
	bwmarrin58 = "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"
	bwmarrin32 = "ybndrfg8ejkmcpqxot1uwisza345h769"
	firn58     = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	firn32     = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

// redigit replaces each digit by the one of the same value, and others by one that Parse refuses.
func redigit(text, from, to string) string {
	return strings.Map(func(r rune) rune {
		if i := strings.IndexRune(from, r); i >= 0 {
			return rune(to[i])
		}
		return '!'
	}, text)
}

func Example_bwmarrinTexts() {
	const text = "5W5ZFoG5LmG" // id.Base58() of bwmarrin/snowflake
	fmt.Println(firn.Base58.Parse(text))
	fmt.Println(firn.Base58.Parse(redigit(text, bwmarrin58, firn58)))
	fmt.Println(firn.Base32.Parse(redigit("bzt", bwmarrin32, firn32)))
	// Output:
	// 1939202402192261251 <nil>
	// 2124950006535319552 <nil>
	// 1777 <nil>
}
