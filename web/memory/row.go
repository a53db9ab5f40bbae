package memory

import (
	"context"
	"strconv"
	"strings"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/web/merge"
)

// rowOf returns the fields of a fact in the list.
func rowOf(ctx context.Context, m service.View, f service.MemoryFact) (*editedRow, error) {
	data, err := m.ReadBlob(ctx, f.Etag)
	if err != nil {
		return nil, err
	}
	row := &editedRow{Name: f.Name(), Value: merge.Plain(facts.Whole(data)), Confidence: confidenceOf(f), Expires: f.Expires}
	if f.Expired {
		row.Expires = ""
	}
	return row, nil
}

// confidenceOf returns the confidence that a form offers. The form states the person's own
// confidence, so the field is empty for an inferred fact. Empty means certain.
func confidenceOf(f service.MemoryFact) string {
	if !f.HasSure || !f.Stated() {
		return ""
	}
	return strconv.FormatFloat(f.Sure, 'g', -1, 64)
}

// parseConfidence parses the field of a form. An empty field means certain.
func parseConfidence(text string) (*float64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil || !(n >= 0 && n <= 1) {
		return nil, fault.New(fault.Invalid, "The confidence must be a number between 0 and 1, such as 0.8.")
	}
	return &n, nil
}
