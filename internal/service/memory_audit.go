package service

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"satchel/internal/facts"
	"satchel/internal/fault"
)

// Limits of an audit.
const (
	maxFindings  = 100
	maxInFinding = 10 // facts that a finding lists
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
	Advice string       `json:"advice"` // what is wrong and what to do
	Facts  []MemoryFact `json:"facts"`
	// Left counts the facts that are not listed, because there are too many.
	Left int `json:"left,omitempty"`
}

// AuditKind is the kind of a finding.
type AuditKind string

// The kinds, the most urgent first.
const (
	AuditNotAFact AuditKind = "not_a_fact" // a file under memory/ that is not a valid fact
	AuditSameKey  AuditKind = "same_key"   // facts with the same key
	AuditAlike    AuditKind = "alike"      // facts with similar values
	AuditExpired  AuditKind = "expired"
	AuditUnsure   AuditKind = "unsure" // inferred with a low confidence
	AuditOld      AuditKind = "old"    // inferred, and not confirmed for a year
)

// AuditMemory finds the facts to merge, correct or forget. It changes nothing. Each fact is
// in at most one finding.
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
	found := auditFacts(ctx, all.Facts, s.o.Now())
	if ctx.Err() != nil {
		return MemoryAudit{}, fault.Wrap(ctx.Err(), fault.Canceled, "The call was cancelled.")
	}
	return found, nil
}

// auditFacts finds what to mend among facts. When ctx ends, it leaves out some findings.
func auditFacts(ctx context.Context, all []MemoryFact, now time.Time) MemoryAudit {
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
		key, _ := facts.Name(all[i].Key)
		byKey[key] = append(byKey[key], i)
	}
	for _, i := range current {
		key, _ := facts.Name(all[i].Key)
		if same := byKey[key]; len(same) > 1 && same[0] == i {
			add(AuditSameKey, "Two or more facts have the same key. Merge them if they are about the same thing.", same...)
		}
	}
	for _, group := range alikeFacts(ctx, all, current) {
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

// alikeFacts groups the facts with similar values (facts.Words.Similar). Two similar values share
// a word that is among the rarest words of each. So only facts that share such a word are
// compared (prefix filtering).
func alikeFacts(ctx context.Context, all []MemoryFact, of []int) [][]int {
	words := map[int]facts.Words{}
	count := map[string]int{}
	for _, i := range of {
		words[i] = facts.WordsOf(all[i].Value)
		for w := range words[i] {
			count[w]++
		}
	}
	byRarity := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a, b))
	})
	rank := make(map[string]int, len(byRarity))
	for r, w := range byRarity {
		rank[w] = r
	}
	ranks := make([][]int, len(all))       // for each fact, the ranks of its words, rarest first
	having := make([][]int, len(byRarity)) // earlier facts, by the rank of each of their rarest words
	compared := make([]int, len(all))      // for each fact, the last fact that it was compared with, plus 1
	equal := map[string]int{}              // by the ranks of a fact's words: the first such fact
	parent := make([]int, len(all))        // for each fact, an earlier one of its group, or itself
	first := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for _, i := range of {
		if ctx.Err() != nil {
			return nil
		}
		parent[i] = i
		if len(words[i]) == 0 {
			continue // values without words, such as an emoji, are not alike
		}
		for w := range words[i] {
			ranks[i] = append(ranks[i], rank[w])
		}
		slices.Sort(ranks[i])
		key := fmt.Sprint(ranks[i])
		if j, ok := equal[key]; ok {
			parent[i] = first(j)
			continue
		}
		equal[key] = i
		n := len(ranks[i])
		for _, r := range ranks[i][:n-(3*n+3)/4+min(1, n)] {
			for _, j := range having[r] {
				if compared[j] == i+1 {
					continue
				}
				compared[j] = i + 1
				if a, b := first(i), first(j); a != b && similar(ranks[i], ranks[j]) {
					parent[max(a, b)] = min(a, b)
				}
			}
			having[r] = append(having[r], i)
		}
	}
	members := map[int][]int{}
	for _, i := range of {
		members[first(i)] = append(members[first(i)], i)
	}
	var out [][]int
	for _, i := range of {
		if len(members[i]) > 1 {
			out = append(out, members[i])
		}
	}
	return out
}

// similar reports what facts.Words.Similar reports, for sorted ranks of words.
func similar(a, b []int) bool {
	need := 3 * max(len(a), len(b))
	if 4*min(len(a), len(b)) < need {
		return false
	}
	both := 0
	for x, y := 0, 0; x < len(a) && y < len(b); {
		switch c := cmp.Compare(a[x], b[y]); {
		case c < 0:
			x++
		case c > 0:
			y++
		default:
			both, x, y = both+1, x+1, y+1
		}
	}
	return 4*both >= need
}
