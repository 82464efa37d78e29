package migrate

import (
	"net/url"
	"testing"
)

func FuzzParametersAreReadAsAQueryIs(f *testing.F) {
	for _, text := range []string{
		"", "bizType", "bizType=", "bizType=a&bizType=b", "x=1&bizType=a%20b+c", "biz%54ype=a", "bizType=%zz&bizType=b", "%zz=1&bizType=a",
		"bizType=a;b&bizType=c", "bizType=a=b", "&&bizType=a&", "BizType=a", "bizType+=a", "xbizType=a", "bizType==",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, _ := url.ParseQuery(text) // without its unreadable parts
		if got := first([]string{text}, "bizType"); got != want.Get("bizType") {
			t.Errorf("%q: %q, want %q", text, got, want.Get("bizType"))
		}
	})
}

func TestAParameterOfTheQueryReplacesThatOfTheForm(t *testing.T) {
	for _, c := range []struct{ query, form, want string }{
		{"bizType=a", "bizType=b", "a"}, {"bizType=", "bizType=b", ""}, {"x=a", "bizType=b", "b"}, {"", "", ""},
	} {
		if got := first([]string{c.query, c.form}, "bizType"); got != c.want {
			t.Errorf("%q and %q: %q, want %q", c.query, c.form, got, c.want)
		}
	}
}
