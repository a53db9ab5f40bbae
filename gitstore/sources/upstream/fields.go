package upstream

import (
	"reflect"
	"strings"

	"satchel/internal/space"
)

// Describe returns the kinds with their settings, for people who enter them.
func Describe() []space.SourceKindInfo {
	var out []space.SourceKindInfo
	for _, k := range Kinds() {
		out = append(out, space.SourceKindInfo{Kind: space.SourceKind(k.Name), Title: k.Title, Settings: fieldsOf(reflect.TypeOf(k.New()).Elem())})
	}
	return out
}

func fieldsOf(t reflect.Type) []space.SyncSetting {
	var out []space.SyncSetting
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			out = append(out, fieldsOf(f.Type)...)
		} else if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			out = append(out, space.SyncSetting{Name: name, Type: typeOf(f.Type)})
		}
	}
	return out
}

func typeOf(t reflect.Type) space.SyncSettingType {
	switch t.Kind() {
	case reflect.String:
		return space.SettingText
	case reflect.Bool:
		return space.SettingFlag
	case reflect.Int, reflect.Int64:
		return space.SettingNumber
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return space.SettingList
		}
	}
	return space.SettingOther
}
