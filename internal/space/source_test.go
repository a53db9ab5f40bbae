package space_test

import (
	"reflect"
	"strings"
	"testing"

	"satchel/internal/space"
)

// Fields has each field of SourceText, under its JSON name.
func TestTheTextsOfASourceAreAllListed(t *testing.T) {
	var text space.SourceText
	v, list := reflect.ValueOf(&text).Elem(), text.Fields()
	if len(list) != v.NumField() {
		t.Fatalf("%d of %d fields are listed", len(list), v.NumField())
	}
	for i, f := range list {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if f.Name != name || f.Text != v.Field(i).Addr().Interface() || f.Max <= 0 {
			t.Errorf("%s is listed as %q, with %d characters", v.Type().Field(i).Name, f.Name, f.Max)
		}
	}
}
