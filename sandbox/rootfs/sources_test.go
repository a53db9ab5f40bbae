package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/internal/fault"
)

const oneLine = `# deb http://commented.example/debian bookworm main
deb-src http://src.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://other.example/tool stable main
deb cdrom:[Debian]/ bookworm main
deb http://a.example/debian bookworm main contrib # the nearest
deb HTTP://a.example/debian-security bookworm-security main
deb http://a.example/contrib bookworm contrib
deb broken
`

const paragraphs = `# a comment
Types: deb deb-src
URIs: http://b.example/debian
Suites: trixie trixie-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 URIs: http://inside-a-key.example

Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main
Enabled: no

Types: deb
URIs: https://user:secret@c.example/debian-security
Suites: trixie-security
Components: main
`

func aptDir(t *testing.T, list, deb822 string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sources.list.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"sources.list": list, "sources.list.d/d.sources": deb822, "sources.list.d/x.list.save": "deb http://save.example/debian sid main"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestArchivesComeFromApt(t *testing.T) {
	dir := aptDir(t, oneLine, paragraphs)
	tests := []struct {
		suite, named, mirror string
		updates              []line
	}{
		{"bookworm", "", "http://a.example/debian", []line{{"http://a.example/debian-security", "bookworm-security", "main"}}},
		{"trixie", "", "http://b.example/debian", []line{
			{"http://b.example/debian", "trixie-updates", "main"}, {"https://user:secret@c.example/debian-security", "trixie-security", "main"},
		}},
		{"bookworm", "http://mine.example/d", "http://mine.example/d", []line{{"http://a.example/debian-security", "bookworm-security", "main"}}},
		{"sid", "http://mine.example/d", "http://mine.example/d", nil},
	}
	for _, tt := range tests {
		t.Run(tt.suite+" "+tt.named, func(t *testing.T) {
			a, err := findArchives(dir, tt.suite, tt.named)
			if err != nil || a.mirror != tt.mirror || !slices.Equal(a.updates, tt.updates) {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
	for name, where := range map[string]string{"a suite that apt does not know": dir, "no apt at all": t.TempDir()} {
		if _, err := findArchives(where, "sid", ""); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "--mirror") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := shownURL("https://user:secret@c.example/d"); got != "https://c.example/d" {
		t.Errorf("shown as %s", got)
	}
}

// FuzzSources: whatever is in apt's configuration, only whole archives come of
// it.
func FuzzSources(f *testing.F) {
	f.Add(oneLine)
	f.Add(paragraphs)
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range append(readList(strings.NewReader(text)), readDeb822(strings.NewReader(text))...) {
			if strings.ContainsAny(s.uri, " \t\n") || slices.Contains(s.suites, "") || slices.Contains(s.components, "") {
				t.Errorf("%+v", s)
			}
		}
	})
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		bad  string
	}{
		{"the least", Options{Dir: "x"}, ""},
		{"all", Options{Dir: "/srv/x", Suite: "trixie", Mirror: "https://a.example/debian", Include: []string{"g++", "python3.11"}}, ""},
		{"no directory", Options{}, "Name the directory"},
		{"the root directory", Options{Dir: "/"}, "cannot be built"},
		{"attack: a suite that is a flag", Options{Dir: "x", Suite: "--foreign"}, "no name of a Debian release"},
		{"attack: a suite with a path", Options{Dir: "x", Suite: "../sid"}, "no name of a Debian release"},
		{"attack: a package that is a flag", Options{Dir: "x", Include: []string{"-y"}}, "no name of a Debian package"},
		{"attack: two packages in one", Options{Dir: "x", Include: []string{"a,b"}}, "no name of a Debian package"},
		{"a local mirror", Options{Dir: "x", Mirror: "file:///srv"}, "is no mirror"},
		{"a scheme in capitals", Options{Dir: "x", Mirror: "HTTPS://a.example/debian"}, ""},
		{"a password that no file of passwords can hold", Options{Dir: "x", Mirror: "http://u:a%20b@a.example/"}, "blank or a quote"},
		{"attack: a password with a line end", Options{Dir: "x", Mirror: "http://u:a%0Amachine%20b@a.example/"}, "blank or a quote"},
		{"a password in what is no mirror", Options{Dir: "x", Mirror: "ftp://u:secret@a.example/"}, "That is no mirror"},
		{"a password in what is no URL", Options{Dir: "x", Mirror: "http://u:secret/%zz@a.example/"}, "That is no mirror"},
		{"attack: a mirror with options", Options{Dir: "x", Mirror: "http://[trusted=yes] a/"}, "is no mirror"},
		{"attack: a mirror with a line end", Options{Dir: "x", Mirror: "http://a/\ndeb http://b"}, "is no mirror"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.o.Validate()
			if tt.bad == "" && err != nil || tt.bad != "" && (fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.bad)) {
				t.Errorf("%v", err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the password is in %v", err)
			}
		})
	}
}
