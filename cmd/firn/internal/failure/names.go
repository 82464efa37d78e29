package failure

import (
	"strings"
	"unicode/utf8"
)

// most is how many letters may differ.
const most = 2

// DidYouMean ends an error about a name that does not exist: with the names that are nearest to it, or empty.
func DidYouMean(name string, names []string) string {
	lower := strings.ToLower(name)
	var found []string
	least := min(most, utf8.RuneCountInString(name)-1)
	for _, n := range names {
		d := Distance(lower, strings.ToLower(n))
		if strings.HasPrefix(strings.ToLower(n), lower) {
			d = 0
		}
		if d < least {
			found, least = nil, d
		}
		if d == least {
			found = append(found, n)
		}
	}
	if name == "" || len(found) == 0 {
		return ""
	}
	return ": did you mean " + List(found, "or") + "?"
}

// List joins names, of which there is one at least, as in "a, b and c".
func List(names []string, and string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " " + and + " " + names[last]
}

// Distance returns how many edits make b of a: a character added, removed or replaced, or two neighbours swapped (optimal
// string alignment).
func Distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	var before []int              // the row before last
	row := make([]int, len(to)+1) // the distances of the beginning of a from each beginning of b
	for j := range row {
		row[j] = j
	}
	for i, r := range from {
		next := make([]int, len(row))
		next[0] = i + 1
		for j, s := range to {
			replaced := row[j]
			if r != s {
				replaced++
			}
			next[j+1] = min(replaced, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && r == to[j-1] && from[i-1] == s {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(to)]
}

// Clip cuts a text after so many bytes, between characters.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
