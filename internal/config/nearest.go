package config

import (
	"strings"

	"satchel/internal/editdistance"
)

// nearest returns the known name that a person most likely means, or "" if none is close.
func nearest(unknown string, known []string) string {
	if found := editdistance.Nearest(unknown, known); found != "" {
		return found
	}
	// The name may be correct but in the wrong section.
	last := strings.ToLower(unknown[strings.LastIndexByte(unknown, '.')+1:])
	for _, k := range known {
		if k[strings.LastIndexByte(k, '.')+1:] == last {
			return k
		}
	}
	return ""
}

// nearestVariable returns the nearest variable; see nearest. People omit the section: they
// write SATCHEL_LISTEN because the flag is --listen.
func (l *loader) nearestVariable(name string, known []string) string {
	last := strings.TrimPrefix(name, "SATCHEL_")
	var found []string
	for i := range l.keys {
		k := &l.keys[i]
		if strings.EqualFold(strings.ReplaceAll(k.flag, "-", "_"), last) {
			return k.env()
		}
		if strings.HasSuffix(k.env(), "_"+last) {
			found = append(found, k.env())
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return nearest(name, known)
}
