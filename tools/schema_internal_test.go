package tools

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"satchel/internal/service"
)

// TestSearchSchemaFitsAnswer: structuredContent must conform to outputSchema.
func TestSearchSchemaFitsAnswer(t *testing.T) {
	var schema struct {
		Properties map[string]struct {
			Items struct {
				Properties map[string]any
				Required   []string
			}
		}
		Required []string
	}
	if err := json.Unmarshal([]byte(searchOutput), &schema); err != nil {
		t.Fatal(err)
	}
	fields := func(v any) (all, always []string) {
		for f := range reflect.TypeOf(v).Fields() {
			name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				continue // not exported
			}
			all = append(all, name)
			if rest == "" {
				always = append(always, name)
			}
		}
		slices.Sort(all)
		slices.Sort(always)
		return all, always
	}
	keys := func(m map[string]any) []string {
		var k []string
		for n := range m {
			k = append(k, n)
		}
		slices.Sort(k)
		return k
	}
	all, always := fields(service.SearchResult{})
	all = slices.DeleteFunc(all, func(name string) bool { return name == "why" }) // no tool asks for it
	item := schema.Properties["results"].Items
	slices.Sort(item.Required)
	if !slices.Equal(all, keys(item.Properties)) || !slices.Equal(always, item.Required) {
		t.Errorf("a result has %v, always %v; the schema %v, requires %v", all, always, keys(item.Properties), item.Required)
	}
	all, always = fields(service.SearchResults{})
	var props []string
	for n := range schema.Properties {
		props = append(props, n)
	}
	slices.Sort(props)
	slices.Sort(schema.Required)
	if !slices.Equal(all, props) || !slices.Equal(always, schema.Required) {
		t.Errorf("an answer has %v, always %v; the schema %v, requires %v", all, always, props, schema.Required)
	}
}
