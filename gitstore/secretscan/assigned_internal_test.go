package secretscan

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// assignedExpr is what a line looks like that assigns.
var assignedExpr = regexp.MustCompile("(?i)(?:password|passwd|passphrase|pwd|secret|to[k]en|api[_-]?[k]ey)[`\"'*]{0,3}[ \t]{0,10}(?::=|[:=])[ \t]{0,10}[*]{0,2}[ \t]?([`\"']?)([^\\s\"'`,;|]{8,201})")

// What is assigned is found wherever the expression matches, and whatever stands around
// it.
func FuzzAssigned(f *testing.F) {
	const value = "h7Gq-92k"
	for _, name := range append(assignedNames, "PassWord", "DB_PWD") {
		for _, gap := range []string{"", " ", "\t", "\"", "`'*", strings.Repeat(" ", 10), "**" + strings.Repeat(" \t", 5)} {
			for _, sign := range []string{"=", ":", ":="} {
				for _, then := range []string{"", " ", "\"", "** `", "**", strings.Repeat(" ", 10) + "** '", " *", " |\n  ", " >-\r\n"} {
					f.Add("x " + name + gap + sign + then + value)
				}
			}
		}
	}
	for _, s := range []string{"password=\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6", "a:b=c token: =:=:=:=:=", "token token = x:y, secret:\xff\xff\xff\xff\xff\xff\xff\xff", "password: **abcdef", "a://b:c@", "a://:@:@", "pwd:|", "pwd:>\n", "pwd=h7Gq-92k token=pwd=h7Gq-92k"} {
		f.Add(s)
	}
	s, err := New(Options{MaxFindings: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, err := s.assigned(context.Background(), []byte(text), false)
		if err != nil {
			t.Fatal(err)
		}
		end := 0
		for _, f := range found {
			if f.Start < end || f.End <= f.Start || f.End > len(text) || f.Line < 1 || f.Column < 1 || f.Column > f.Start+1 {
				t.Fatalf("%+v after one that ends at %d in %q", f, end, text)
			}
			end = f.End
		}
		for _, m := range assignedExpr.FindAllStringSubmatchIndex(text, -1) {
			v := text[m[4]:m[5]]
			if m[2] == m[3] {
				v = strings.TrimRight(v, ".:)*")
			}
			hit := false
			for _, f := range found {
				hit = hit || f.Start < m[5] && f.End > m[4]
			}
			if !hit && utf8.ValidString(v) && passwordLike(v) && strings.IndexByte("*=|>", v[0]) < 0 {
				t.Errorf("%q is passed over in %q", v, text)
			}
		}
		const planted = "\nDB_PASSWORD=" + value + "\n"
		if found, err = s.assigned(context.Background(), []byte(text+planted+text), false); err != nil {
			t.Fatal(err)
		}
		hit := false
		for _, f := range found {
			hit = hit || f.End == len(text)+len(planted)-1
		}
		if !hit {
			t.Errorf("%q hides a password", text)
		}
	})
}
