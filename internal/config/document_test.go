package config

import (
	"fmt"
	"strings"
)

// Document returns the reference of all keys in Markdown. A test checks that
// docs/configuration.md is this text.
func Document() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Generated from internal/config by "go test ./internal/config -update"; do not edit. -->

Satchel starts without any configuration. To change a default, set the key in ` + "`satchel.yaml`" + `, in the environment or by a flag of ` + "`satchel serve`" + `. Flags override the environment, and the environment overrides the file. Satchel reads the first of these files that exists:

1. the file in ` + "`--config`" + `,
2. the file in ` + "`SATCHEL_CONFIG`" + `,
3. ` + "`satchel.yaml`" + ` in the data directory,
4. ` + "`" + SystemFile + "`" + `.

Unknown keys and invalid values are errors. Satchel reports all of them at once, each with its place and, for an unknown key, the most similar key. [satchel.example.yaml](satchel.example.yaml) has every key with its default.

- A **duration** is a number with a unit: ` + "`45s`, `10m`, `1h30m`, `90d`" + `.
- A **size** is a number with ` + "`KiB`, `MiB`, `GiB` or `TiB`" + `, powers of 1024; without a unit it is in bytes.
- A **list** is a YAML list in the file, and comma-separated elsewhere.
- An empty variable counts as not set.

These variables are not keys: ` + "`SATCHEL_CONFIG`" + ` (the file), ` + "`SATCHEL_URL` and `SATCHEL_TOKEN`" + ` (for commands that call a server), and ` + "`SATCHEL_TEST_…`" + ` (for tests). Any other variable that begins with ` + "`SATCHEL_`" + ` is an error, except those that Kubernetes sets for a service named satchel (` + "`SATCHEL_SERVICE_…`, `SATCHEL_PORT…`" + `).
`)
	all := keys(new(Config))
	for _, s := range sections() {
		if s.name != "" {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.name, s.doc)
		}
		b.WriteString("\n| key | value | default | variable, flag | |\n| --- | --- | --- | --- | --- |\n")
		for _, k := range all {
			if parent(k.path) != s.name {
				continue
			}
			def := "empty"
			if k.def != "" {
				def = "`" + k.def + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` `--%s` | %s |\n", k.path, k.kind, def, k.env(), k.flag, k.doc)
		}
	}
	b.WriteString(documentSources())
	return b.String()
}

// SampleFile returns a configuration file with the defaults, in which every key is a comment.
// A test checks that docs/satchel.example.yaml is this text.
func SampleFile() string {
	var b strings.Builder
	b.WriteString("# Satchel's configuration, with every key at its default. Take out the # of what\n# you change, and of the section above it.\n")
	all := keys(new(Config))
	for _, s := range sections() {
		// A section inside another section is indented once more.
		depth := strings.Count(s.name, ".")
		in := strings.Repeat("  ", depth)
		switch {
		case depth > 0:
			fmt.Fprintf(&b, "#%s# %s\n#%s%s:\n", in, strings.ReplaceAll(s.doc, "`", ""), in, last(s.name))
		case s.name != "":
			fmt.Fprintf(&b, "\n# %s\n#%s:\n", strings.ReplaceAll(s.doc, "`", ""), s.name)
		}
		for _, k := range all {
			if parent(k.path) != s.name {
				continue
			}
			name := last(k.path)
			if s.name == "" {
				fmt.Fprintf(&b, "\n# %s\n#%s: %s\n", k.doc, name, k.example())
				continue
			}
			fmt.Fprintf(&b, "#%s  # %s\n#%s  %s: %s\n", in, k.doc, in, name, k.example())
		}
	}
	b.WriteString(sampleSources)
	return b.String()
}

// example returns the default as YAML.
func (k *key) example() string {
	switch {
	case k.kind == "list" && k.def == "":
		return "[]"
	case k.kind == "list":
		return `["` + strings.ReplaceAll(k.def, ",", `", "`) + `"]`
	case k.path == "data_dir" || k.path == "database.url":
		return `"" # ` + k.def
	case k.def == "":
		return `""`
	}
	return k.def
}

// parent returns a path without its last word, or "" at the top. last returns that word.
func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }
func last(path string) string   { return path[strings.LastIndexByte(path, '.')+1:] }

// documentSources returns the reference of the entries.
func documentSources() string {
	var b strings.Builder
	b.WriteString("\n## sources\n\nA list of sources that follow an upstream, in the file only. The server reads the list again when the file changes. " +
		"The further keys of an entry are the settings of its kind. See [sources.md](sources.md).\n\n| key | value | default | |\n| --- | --- | --- | --- |\n")
	for _, k := range entryKeys() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, k.value, k.def, k.doc)
	}
	return b.String()
}

// sampleSources is the part of the sample file about sources.
const sampleSources = `
# Sources that follow an upstream. An entry is such as
# {id: nuxt, kind: github, repo: nuxt/nuxt, content_path: docs, title: Nuxt, audience: everyone, every: 6h}
#sources: []
`
