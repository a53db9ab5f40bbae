package upstream_test

import (
	"testing"

	"satchel/gitstore/sources/upstream"
	"satchel/internal/space"
)

// Every kind is described with all its settings, and people can enter most of them.
func TestDescribe(t *testing.T) {
	all := upstream.Describe()
	for i, k := range upstream.Kinds() {
		names := upstream.Settings(k.New())
		if string(all[i].Kind) != k.Name || all[i].Title == "" || len(all[i].Settings) != len(names) {
			t.Errorf("%+v", all[i])
			continue
		}
		for j, x := range all[i].Settings {
			if x.Name != names[j] || x.Type == space.SettingOther && x.Name != "additional_syncs" {
				t.Errorf("%s: %+v", k.Name, x)
			}
		}
	}
}
