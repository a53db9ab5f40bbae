package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"satchel/internal/facts"
)

// Limits of an audit.
const (
	maxFindings  = 100
	maxInFinding = 10 // facts
	unsureBelow  = .5
	oldAfterDays = 365
)

// AuditMemoryInput names a space.
type AuditMemoryInput struct {
	Space SpaceRef `json:"space"`
}

// MemoryAudit lists what to mend in the memory of a space.
type MemoryAudit struct {
	Facts    int            `json:"facts"` // valid facts
	Findings []AuditFinding `json:"findings"`
	// Left counts the findings that are not listed, because there are too many.
	Left int `json:"left,omitempty"`
}

// AuditFinding is one thing to mend, and the facts that it concerns.
type AuditFinding struct {
	Kind   AuditKind    `json:"kind"`
	Advice string       `json:"advice"` // a sentence
	Facts  []MemoryFact `json:"facts"`
	// Left counts the facts that are not listed, because there are too many.
	Left int `json:"left,omitempty"`
}

// AuditKind is the kind of a finding.
type AuditKind string

// The kinds, the most urgent first.
const (
	AuditNotAFact AuditKind = "not_a_fact" // a file under memory/
	AuditSameKey  AuditKind = "same_key"   // facts of different types
	AuditAlike    AuditKind = "alike"      // facts with similar values
	AuditExpired  AuditKind = "expired"
	AuditUnsure   AuditKind = "unsure" // inferred with a low confidence
	AuditOld      AuditKind = "old"    // inferred, and not confirmed for a year
)

// AuditMemory looks for facts to merge, correct or forget. It changes nothing. Each fact is
// in one finding at most.
func (s *Service) AuditMemory(ctx context.Context, a Actor, in AuditMemoryInput) (MemoryAudit, error) {
	v, err := s.open(ctx, a, "AuditMemory", in.Space)
	if err != nil {
		return MemoryAudit{}, err
	}
	at, err := v.Head(ctx)
	if err != nil {
		return MemoryAudit{}, err
	}
	all, err := v.Memory(ctx, at)
	if err != nil {
		return MemoryAudit{}, err
	}
	return auditFacts(all.Facts, s.o.Now()), nil
}

func auditFacts(all []MemoryFact, now time.Time) MemoryAudit {
	var out MemoryAudit
	seen := make([]bool, len(all))
	add := func(kind AuditKind, advice string, members ...int) {
		if len(out.Findings) == maxFindings {
			out.Left++
			return
		}
		f := AuditFinding{Kind: kind, Advice: advice}
		for _, i := range members {
			seen[i] = true
			if len(f.Facts) == maxInFinding {
				f.Left++
				continue
			}
			f.Facts = append(f.Facts, all[i])
		}
		out.Findings = append(out.Findings, f)
	}
	var current []int
	for i, f := range all {
		switch {
		case f.Problem != "":
			add(AuditNotAFact, "The file is not a fact and is not remembered. Save what it says as a fact, or move it.", i)
			continue
		case f.Expired:
		default:
			current = append(current, i)
		}
		out.Facts++
	}
	byKey := map[string][]int{}
	for _, i := range current {
		_, key, _ := facts.Place(string(all[i].Path))
		key, _ = facts.Name(key)
		byKey[key] = append(byKey[key], i)
	}
	for _, i := range current {
		_, key, _ := facts.Place(string(all[i].Path))
		key, _ = facts.Name(key)
		if same := byKey[key]; len(same) > 1 && same[0] == i {
			add(AuditSameKey, "Two or more facts have the same key. Merge them if they are about the same thing.", same...)
		}
	}
	for _, group := range alikeFacts(all, current) {
		if group = slices.DeleteFunc(group, func(i int) bool { return seen[i] }); len(group) > 1 {
			add(AuditAlike, "Two or more facts say nearly the same, or contradict each other. Keep one.", group...)
		}
	}
	for i, f := range all {
		if f.Expired && !seen[i] {
			add(AuditExpired, fmt.Sprintf("The fact expired on %s. Confirm it without a day of expiry, or forget it.", f.Expires), i)
		}
	}
	yearAgo := now.UTC().AddDate(0, 0, -oldAfterDays).Format(time.DateOnly)
	for _, i := range current {
		f := all[i]
		switch {
		case seen[i] || f.Stated():
		case f.HasSure && f.Sure < unsureBelow:
			add(AuditUnsure, "An AI inferred the fact and was not sure. Confirm it, or forget it.", i)
		case cmp.Or(f.Confirmed, f.FirstSeen) != "" && cmp.Or(f.Confirmed, f.FirstSeen) < yearAgo:
			add(AuditOld, "An AI inferred the fact, and nothing has confirmed it for a year. Confirm it, or forget it.", i)
		}
	}
	return out
}

// alikeFacts groups the facts with similar values. Two similar values share a word among the
// rarest words of each (prefix filtering), so only such pairs are compared.
func alikeFacts(all []MemoryFact, of []int) [][]int {
	count := map[string]int{}
	words := map[int]facts.Words{}
	for _, i := range of {
		words[i] = facts.WordsOf(all[i].Value)
		for w := range words[i] {
			count[w]++
		}
	}
	alike := map[int][]int{}
	having := map[string][]int{} // facts before this one, by their rare words
	for _, i := range of {
		tried := map[int]bool{}
		for _, w := range rarest(words[i], count) {
			for _, j := range having[w] {
				if !tried[j] && words[i].Similar(words[j]) {
					alike[i], alike[j] = append(alike[i], j), append(alike[j], i)
				}
				tried[j] = true
			}
			having[w] = append(having[w], i)
		}
	}
	var out [][]int
	grouped := map[int]bool{}
	for _, i := range of {
		if grouped[i] || len(alike[i]) == 0 {
			continue
		}
		group := []int{i}
		grouped[i] = true
		for k := 0; k < len(group); k++ {
			for _, j := range alike[group[k]] {
				if !grouped[j] {
					group, grouped[j] = append(group, j), true
				}
			}
		}
		slices.Sort(group)
		out = append(out, group)
	}
	return out
}

// rarest returns the words of a value of which a similar value has at least one: all but
// the most frequent three quarters, and one more.
func rarest(w facts.Words, count map[string]int) []string {
	list := make([]string, 0, len(w))
	for word := range w {
		list = append(list, word)
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a, b)) })
	return list[:len(list)-(3*len(list)+3)/4+min(1, len(list))]
}
