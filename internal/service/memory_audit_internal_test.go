package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/facts"
	"satchel/internal/space"
)

func auditFact(name, frontMatter string) MemoryFact {
	kind, key, _ := strings.Cut(name, "/")
	f := MemoryFact{Path: space.Path(facts.Path(kind, key)), Type: kind, Key: key, Fact: facts.Read([]byte("---\n" + frontMatter + "\n---\n"))}
	f.Expired = f.Over("2026-11-20")
	return f
}

func TestAuditMemory(t *testing.T) {
	all := []MemoryFact{
		auditFact("a/not", "colour: red"),
		auditFact("person/ann", "value: Ann leads sales in Berlin"),
		auditFact("project/ann", "value: The newsletter"),
		auditFact("preference/tea", "value: Likes green tea in the morning"),
		auditFact("preference/drink", "value: Likes black tea in the morning"),
		auditFact("fact/visit", "value: Visits on Monday\nexpires: 2026-11-19"),
		auditFact("fact/maybe", "value: May move to Rome\nsource: inferred\nconfidence: 0.3"),
		auditFact("fact/old", "value: Has a red bicycle\nsource: inferred\nlast_confirmed: 2025-01-01"),
		auditFact("fact/old-said", "value: Born on a boat\nsource: user_explicit\nlast_confirmed: 2020-01-01"),
		auditFact("fact/fine", "value: Uses Helix\nsource: inferred\nconfidence: 0.9\nlast_confirmed: 2026-11-01"),
	}
	got := auditFacts(t.Context(), all, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	var lines []string
	for _, f := range got.Findings {
		var names []string
		for _, x := range f.Facts {
			names = append(names, x.Name())
		}
		if f.Advice == "" {
			t.Errorf("%s has no advice", f.Kind)
		}
		lines = append(lines, string(f.Kind)+" "+strings.Join(names, " "))
	}
	want := []string{
		"not_a_fact a/not", "same_key person/ann project/ann", "alike preference/tea preference/drink",
		"expired fact/visit", "unsure fact/maybe", "old fact/old",
	}
	if !slices.Equal(lines, want) || got.Facts != 9 {
		t.Errorf("%d facts\n%s", got.Facts, strings.Join(lines, "\n"))
	}
}

// TestAlikeFacts compares the groups with those of a comparison of every pair.
func TestAlikeFacts(t *testing.T) {
	var all []MemoryFact
	var of []int
	for i := range 400 {
		value := fmt.Sprintf("w%d w%d w%d w%d and the w%d", i%7, i%11, i%5, i%3, i%13)
		all, of = append(all, auditFact(fmt.Sprintf("f/k%d", i), "value: "+value)), append(of, i)
	}
	for i, value := range []string{"👍", "?!"} { // values without words
		all, of = append(all, auditFact(fmt.Sprintf("f/sign%d", i), "value: \""+value+"\"")), append(of, len(of))
	}
	grouped := map[int]bool{}
	for _, g := range alikeFacts(t.Context(), all, of) {
		for _, i := range g {
			grouped[i] = true
		}
	}
	for _, i := range of {
		alike := slices.ContainsFunc(of, func(j int) bool {
			return i != j && facts.WordsOf(all[i].Value).Similar(facts.WordsOf(all[j].Value))
		})
		if alike != grouped[i] {
			t.Errorf("%q: alike %t, grouped %t", all[i].Value, alike, grouped[i])
		}
	}
}

func TestAuditIsLimited(t *testing.T) {
	var all []MemoryFact
	for i := range 300 {
		all = append(all, auditFact(fmt.Sprintf("t%d/same", i), fmt.Sprintf("value: a%d", i)), auditFact(fmt.Sprintf("x/k%d", i), "colour: red"))
	}
	got := auditFacts(t.Context(), all, time.Now())
	if len(got.Findings) != maxFindings || got.Left != 201 {
		t.Errorf("%d findings, %d left", len(got.Findings), got.Left)
	}
}

// TestAuditOfEqualFacts checks that many equal facts are one group. Comparing each pair and
// keeping it would take minutes and gigabytes.
func TestAuditOfEqualFacts(t *testing.T) {
	var all []MemoryFact
	for i := range 20_000 {
		all = append(all, auditFact(fmt.Sprintf("t/k%d", i), "value: Prefers green tea in the morning"))
	}
	got := auditFacts(t.Context(), all, time.Now())
	if len(got.Findings) != 1 || got.Findings[0].Left != len(all)-maxInFinding {
		t.Errorf("%d findings", len(got.Findings))
	}
}
