package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"satchel/gitstore/sources/upstream"
	"satchel/internal/fault"
)

func TestOpenNamesTheWrongSetting(t *testing.T) {
	for _, c := range []struct{ kind, settings, field, hint string }{
		{"gti", `{}`, "kind", "git"},
		{"git", `{"ulr": "https://a.example/b.git"}`, "ulr", `"url"`},
		{"git", `{"url": 5}`, "url", ""},
		{"git", `{}`, "url", ""},
		{"git", `{"url": "https://a.example/b.git", "content_path": "../x"}`, "content_path", ""},
		{"git", `[]`, "", ""},
		{"youtube", `{"handle": "a/../b"}`, "handle", "@golang"},
		{"youtube", `{"channel_id": "golang"}`, "channel_id", "UC"},
		{"youtube", `{"playlist": "PL0123456789", "handle": "golang"}`, "channel_id", "one channel"},
		{"youtube", `{"handle": "golang", "languages": ["--exec"]}`, "languages", "en"},
		{"feed", `{"url": "ftp://a.example/"}`, "url", "https://"},
		{"openapi", `{"url": "https://me:secret@a.example/"}`, "url", "password"},
		{"github", `{"repo": "nuxt"}`, "repo", "owner/name"},
		{"github", `{"repo": "nuxt/nuxt", "additional_syncs": [{"repo": "x"}]}`, "repo", ""},
	} {
		_, err := upstream.Open(c.kind, []byte(c.settings))
		if fault.CodeOf(err) != fault.Invalid || fault.FieldOf(err) != c.field || !strings.Contains(fault.PublicOf(err), c.hint) {
			t.Errorf("%s %s: %v, field %q", c.kind, c.settings, err, fault.FieldOf(err))
		}
	}
}

// A person can name the kind of an address.
func TestAt(t *testing.T) {
	for _, c := range []struct{ kind, address, want string }{
		{"github", "https://github.com/nuxt/nuxt/tree/main/docs", `{"repo":"nuxt/nuxt","branch":"main","content_path":"docs"}`},
		{"git", "https://github.com/nuxt/nuxt", `{"url":"https://github.com/nuxt/nuxt"}`},
		{"git", "/srv/notes", `{"url":"/srv/notes"}`},
		{"github", "github.com/nuxt/nuxt", `{"repo":"nuxt/nuxt"}`},
		{"feed", "blog.example/entries", `{"url":"https://blog.example/entries"}`},
		{"feed", "https://blog.example/entries", `{"url":"https://blog.example/entries"}`},
	} {
		u, err := upstream.At(c.kind, c.address)
		if err != nil {
			t.Errorf("%s %s: %v", c.kind, c.address, err)
			continue
		}
		if got, _ := json.Marshal(u); string(got) != c.want {
			t.Errorf("%s %s is %s", c.kind, c.address, got)
		}
	}
	for _, c := range []struct{ kind, address, field string }{
		{"gti", "https://git.example/a", "kind"}, {"youtube", "https://blog.example/", "url"}, {"upload", "https://blog.example/", "url"}, {"git", "::", "url"},
	} {
		if _, err := upstream.At(c.kind, c.address); fault.CodeOf(err) != fault.Invalid || fault.FieldOf(err) != c.field {
			t.Errorf("%s %s: %v, field %q", c.kind, c.address, err, fault.FieldOf(err))
		}
	}
}

func TestRecognize(t *testing.T) {
	for address, want := range map[string]string{
		"https://github.com/nuxt/nuxt":                    `github {"repo":"nuxt/nuxt"}`,
		"github.com/nuxt/nuxt.git":                        `github {"repo":"nuxt/nuxt"}`,
		"https://github.com/nuxt/nuxt/tree/main/docs/a":   `github {"branch":"main","content_path":"docs/a","repo":"nuxt/nuxt"}`,
		"https://git.example/team/handbook.git":           `git {"url":"https://git.example/team/handbook.git"}`,
		"https://api.example/v1/openapi.json":             `openapi {"url":"https://api.example/v1/openapi.json"}`,
		"https://api.example/swagger.yaml":                `openapi {"url":"https://api.example/swagger.yaml"}`,
		"https://blog.example/feed/":                      `feed {"max_entries":500,"url":"https://blog.example/feed/"}`,
		"https://blog.example/rss.xml":                    `feed {"max_entries":500,"url":"https://blog.example/rss.xml"}`,
		"https://www.youtube.com/@golang/videos":          `youtube {"handle":"golang","max_videos":50}`,
		"youtube.com/channel/UC_x5XG1OV2P6uZZ5FSM9Ttw":    `youtube {"channel_id":"UC_x5XG1OV2P6uZZ5FSM9Ttw","max_videos":50}`,
		"https://youtu.be/dQw4w9WgXcQ?list=PL0123456789A": `youtube {"max_videos":50,"playlist":"PL0123456789A"}`,
	} {
		k, u, err := upstream.Recognize(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		b, _ := json.Marshal(u)
		var settings map[string]any
		json.Unmarshal(b, &settings)
		delete(settings, "host")
		b, _ = json.Marshal(settings)
		if got := k.Name + " " + string(b); got != want {
			t.Errorf("%s is %s", address, got)
		}
	}
	for _, address := range []string{"::", "https://www.youtube.com/watch?v=dQw4w9WgXcQ"} {
		if _, _, err := upstream.Recognize(address); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", address, err)
		}
	}
}
