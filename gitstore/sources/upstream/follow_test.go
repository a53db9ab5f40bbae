package upstream

import "testing"

// A push concerns the sources that take files of its repository and branch.
func TestPushesConcernTheSourcesOfTheirBranch(t *testing.T) {
	main := Push{Repository: "https://github.com/Nuxt/nuxt", Branch: "main", Default: true}
	for _, tt := range []struct {
		name, kind, settings string
		push                 Push
		want                 bool
	}{
		{"the branch", "github", `{"repo": "nuxt/nuxt", "branch": "main"}`, main, true},
		{"the default branch", "github", `{"repo": "nuxt/nuxt"}`, main, true},
		{"another branch than the default one", "github", `{"repo": "nuxt/nuxt"}`, Push{Repository: main.Repository, Branch: "next"}, false},
		{"another branch", "github", `{"repo": "nuxt/nuxt", "branch": "3.x"}`, main, false},
		{"another repository", "github", `{"repo": "nuxt/ui"}`, main, false},
		{"an additional repository", "github", `{"repo": "nuxt/ui", "additional_syncs": [{"repo": "nuxt/nuxt"}]}`, main, true},
		{"another server", "github", `{"repo": "nuxt/nuxt", "host": "github.example.com"}`, main, false},
		{"the URL of a git source", "git", `{"url": "https://github.com/nuxt/nuxt.git"}`, main, true},
		{"a local directory", "git", `{"url": "/nuxt/nuxt"}`, Push{Repository: "/nuxt/nuxt", Branch: "main"}, false},
		{"a web site", "web", `{"url": "https://github.com/nuxt/nuxt"}`, main, false},
	} {
		u, err := Open(tt.kind, []byte(tt.settings))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := Follows(u, tt.push); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
