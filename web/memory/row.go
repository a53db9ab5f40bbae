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

// choice is an option of a select field.
type choice struct {
	Value, Text string
	Chosen      bool
}

// confidences returns the choices for a confidence. They include the current value, which can be
// any number between 0 and 1 or an invalid text that a form sent.
func confidences(now string) []choice {
	if now == "1" {
		now = ""
	}
	out := []choice{{Value: "", Text: "Certain"}, {Value: "0.8", Text: "Likely"}, {Value: "0.5", Text: "A guess"}}
	for i := range out {
		if out[i].Chosen = out[i].Value == now; out[i].Chosen {
			return out
		}
	}
	text := now
	if n, err := parseConfidence(now); err == nil {
		text = strconv.FormatFloat(*n*100, 'f', 0, 64) + " % sure"
	}
	return append(out, choice{now, text, true})
}

// Choices returns the choices of the confidence.
func (p *factPage) Choices() []choice { return confidences(p.Confidence) }

// Choices returns the choices of the confidence.
func (r *editedRow) Choices() []choice { return confidences(r.Confidence) }

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
