package secretscan

import (
	"strings"
	"testing"
)

// The look before the expression says no nowhere where the expression matches.
func FuzzAssigns(f *testing.F) {
	const value = "h7Gq-92k"
	for _, name := range append(assignedNames, "PassWord", "api\u212aey", "pa\u017fsword", "API_\u212aEY", "pass\u017fwd") {
		for _, gap := range []string{"", " ", "\t", "\"", "`'*", strings.Repeat(" ", 10), "**" + strings.Repeat(" \t", 5)} {
			for _, sign := range []string{"=", ":", ":="} {
				for _, then := range []string{"", " ", "\"", "** `", "**", strings.Repeat(" ", 10) + "** '", " *"} {
					f.Add("x " + name + gap + sign + then + value)
				}
			}
		}
	}
	for _, s := range []string{"password=\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6", "a:b=c token: =:=:=:=:=", "token token = x:y, secret:\xff\xff\xff\xff\xff\xff\xff\xff", "password: **abcdef"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if assignedExpr.MatchString(line) && !assigns([]byte(line)) {
			t.Errorf("%q is passed over", line)
		}
	})
}

// Attack: prose that is full of names and of signs keeps the expression busy until the
// time for a look is over.
func TestProseIsNoWork(t *testing.T) {
	for _, line := range []string{
		"the token: value is a normal line of prose, and password = x of it\n",
		"It was a bright cold day in April: the clocks were striking thirteen.\n",
		"A secretary keeps passwords https://example.org/a?b=c&d=e in the tokens' house.\n",
	} {
		if assigns([]byte(line)) {
			t.Errorf("the expression is asked of %q", line)
		}
	}
	if !assigns([]byte("DB_PASSWORD = h7Gq-92kLmZ\n")) {
		t.Error("a password is passed over")
	}
}
