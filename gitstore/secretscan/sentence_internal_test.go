package secretscan

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestTheLongestSentenceHasItsWholeCommand checks that callers can rely on MaxSentence and
// never cut a fingerprint.
func TestTheLongestSentenceHasItsWholeCommand(t *testing.T) {
	var about, id string
	for _, r := range append(gitleaksRules(), own()...) {
		if len(r.about)+len(r.id) > len(about)+len(id) {
			about, id = r.about, r.id
		}
		if len(r.about) > maxShown || len(r.id) > maxShown {
			t.Errorf("rule %s is cut", r.id)
		}
	}
	for _, n := range []int{1, 2, 3, 4, 1000} {
		r := &Refusal{Path: "a.md"}
		for i := range n {
			r.Findings = append(r.Findings, Finding{Rule: id, Description: about, Line: math.MaxInt32 - i, Fingerprint: fmt.Sprintf("%020x", i)})
		}
		said := r.sentence()
		for i := range min(n, shownFindings) {
			if !strings.Contains(said, r.Findings[i].Fingerprint) {
				t.Errorf("%d findings: no. %d is not named in %q", n, i, said)
			}
		}
		if len(said) > MaxSentence || !strings.Contains(said, "satchel space allow --user NAME "+r.Findings[0].Fingerprint) {
			t.Errorf("%d findings: %d bytes: %s", n, len(said), said)
		}
	}
	r := &Refusal{Findings: []Finding{{Rule: RuleUnread, Line: 9, Fingerprint: "1"}, {Rule: id, Description: about, Fingerprint: "2"}}}
	if said := r.sentence(); !strings.HasPrefix(said, "From line 9 on it has too many keys, or beginnings of keys, to be searched, its name looks like a secret (") {
		t.Error(said)
	}
}

// A purge does not change the names of files, so a secret in a name needs another remedy.
func TestTheWarningOfASecretInAName(t *testing.T) {
	in := &Refusal{Findings: []Finding{{Line: 3, Description: "key", Fingerprint: "1"}}}
	if said := in.Warning(); !strings.Contains(said, "Line 3 ") || strings.Contains(said, "--file") {
		t.Error(said)
	}
	in.Findings[0].Line = 0
	if said := in.Warning(); !strings.Contains(said, "Its name ") || !strings.Contains(said, "purge --user NAME --file PATH, after you have renamed the file") {
		t.Error(said)
	}
}
