package syncs

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// addresses returns the addresses in the settings of an upstream. Some values become
// addresses: the repo nuxt/nuxt becomes https://github.com/nuxt/nuxt, and the handle golang
// becomes https://www.youtube.com/@golang.
func addresses(settings string) []string {
	var all any
	if json.Unmarshal([]byte(settings), &all) != nil {
		return nil
	}
	var out []string
	host := "github.com"
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			// The source's own address is a string, so strings come before lists of further
			// addresses. The keys are sorted, so that the order is always the same.
			isText := func(k string) int {
				if _, ok := v[k].(string); ok {
					return 0
				}
				return 1
			}
			for _, k := range slices.SortedFunc(maps.Keys(v), func(a, b string) int { return cmp.Or(isText(a)-isText(b), strings.Compare(a, b)) }) {
				walk(k, v[k])
			}
		case []any:
			for _, x := range v {
				walk(key, x)
			}
		case string:
			switch {
			case key == "repo":
				out = append(out, "https://"+host+"/"+v)
			case key == "channel_id":
				out = append(out, "https://www.youtube.com/channel/"+v)
			case key == "handle":
				out = append(out, "https://www.youtube.com/@"+v)
			case key == "playlist":
				out = append(out, "https://www.youtube.com/playlist?list="+v)
			case strings.Contains(v, "://") || strings.HasPrefix(v, "/") && (key == "path" || key == "url"):
				out = append(out, v)
			}
		}
	}
	if top, ok := all.(map[string]any); ok {
		if h, ok := top["host"].(string); ok && h != "" {
			host = h
		}
	}
	walk("", all)
	return out
}

// LocalPaths returns the directories of this machine in the settings of an upstream.
func LocalPaths(settings json.RawMessage) []string {
	var out []string
	for _, a := range addresses(string(settings)) {
		if p := strings.TrimPrefix(a, "file://"); strings.HasPrefix(p, "/") {
			out = append(out, p)
		}
	}
	return out
}

// addressOf returns the first address in the settings of a sync, or "" if there is none.
func addressOf(row syncRow) string {
	if all := addresses(row.Settings); len(all) > 0 {
		return all[0]
	}
	return ""
}

// trustedBy returns a function that reports whether an address is on a host, or in a directory,
// that the settings name. A page of a trusted site must not lead to other private hosts.
func trustedBy(settings []string) func(string) bool {
	return func(address string) bool {
		a, err := url.Parse(address)
		if err != nil {
			return false
		}
		for _, s := range settings {
			if s == address || strings.HasPrefix(s, "/") && strings.HasPrefix(address, strings.TrimSuffix(s, "/")+"/") {
				return true
			}
			if u, err := url.Parse(s); err == nil && a.Host != "" && u.Scheme == a.Scheme && u.Host == a.Host {
				return true
			}
		}
		return false
	}
}

// Allowed reports whether the settings have addresses, and all of them are HTTPS addresses on the
// list. An entry is a host, or a host with the beginning of a path, such as github.com/nuxt/*.
func Allowed(list []string, settings json.RawMessage) bool {
	all := addresses(string(settings))
	for _, s := range all {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || !allowed(list, u) {
			return false
		}
	}
	return len(all) > 0
}

func allowed(list []string, u *url.URL) bool {
	path := wordsOf(u.Host, u.Path)
	if slices.Contains(path, "..") {
		return false
	}
	for _, entry := range list {
		host, under, _ := strings.Cut(strings.TrimSuffix(strings.TrimSuffix(entry, "*"), "/"), "/")
		if !strings.EqualFold(host, u.Host) {
			continue
		}
		if want := wordsOf(host, under); under == "" || len(want) <= len(path) && slices.Equal(want, path[:len(want)]) {
			return true
		}
	}
	return false
}

// wordsOf returns the segments of a path in a form that can be compared. Case matters, except where
// the host is known to ignore it: in owners and repositories, and in the handles of channels.
func wordsOf(host, path string) []string {
	words := strings.Split(strings.TrimSuffix(strings.Trim(path, "/"), ".git"), "/")
	folded := 0
	switch strings.ToLower(host) {
	case "github.com", "gitlab.com", "bitbucket.org", "codeberg.org":
		folded = 2
	case "www.youtube.com":
		if strings.HasPrefix(words[0], "@") {
			folded = 1
		}
	}
	for i := range words[:min(len(words), folded)] {
		words[i] = strings.ToLower(words[i])
	}
	return words
}
