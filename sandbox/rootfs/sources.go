package rootfs

import (
	"bufio"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"satchel/internal/fault"
)

// source is one archive that the machine's apt takes packages from.
type source struct {
	uri        string
	suites     []string
	components []string
}

// archives are where a build takes packages from.
type archives struct {
	mirror  string
	updates []line // security and stable updates, where the machine knows some
}

// line is one line of a sources.list: an archive, a suite and its components.
type line struct{ uri, suite, components string }

// findArchives returns the mirror of a suite and its updates, from the machine's
// own configuration of apt; a mirror that was named comes first.
func findArchives(aptDir, suite, named string) (archives, error) {
	all, err := readSources(aptDir)
	if err != nil {
		return archives{}, err
	}
	a := archives{mirror: named}
	for _, s := range all {
		s.uri = lowerScheme(s.uri)
		for _, of := range s.suites {
			switch {
			case !usable(s.uri) || !slices.Contains(s.components, "main"):
			case of == suite && a.mirror == "":
				a.mirror = s.uri
			case of == suite+"-security" || of == suite+"-updates":
				a.updates = append(a.updates, line{s.uri, of, "main"})
			}
		}
	}
	if a.mirror == "" {
		return a, fault.New(fault.Invalid, "apt on this machine has no mirror of Debian's %s: name one with --mirror URL.", suite)
	}
	return a, nil
}

// readSources reads sources.list and sources.list.d, in both of apt's formats.
// What apt would not read, or is switched off, is left out.
func readSources(aptDir string) ([]source, error) {
	names, err := filepath.Glob(filepath.Join(aptDir, "sources.list.d", "*"))
	if err != nil {
		return nil, err
	}
	var all []source
	for _, name := range append([]string{filepath.Join(aptDir, "sources.list")}, names...) {
		read := readList
		switch filepath.Ext(name) {
		case ".sources":
			read = readDeb822
		case ".list":
		default:
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			continue // apt says so too, and goes on
		}
		found := read(f)
		f.Close()
		all = append(all, found...)
	}
	return all, nil
}

// readList reads the lines "deb [options] URI SUITE COMPONENT…".
func readList(r io.Reader) []source {
	var all []source
	for in := bufio.NewScanner(r); in.Scan(); {
		text, _, _ := strings.Cut(in.Text(), "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(text), "deb ")
		if !ok {
			continue
		}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			_, rest, _ = strings.Cut(rest, "]")
		}
		if f := strings.Fields(rest); len(f) > 2 {
			all = append(all, source{uri: f[0], suites: f[1:2], components: f[2:]})
		}
	}
	return all
}

// readDeb822 reads the paragraphs of a .sources file.
func readDeb822(r io.Reader) []source {
	var all []source
	fields, last := map[string]string{}, ""
	end := func() {
		f := func(name string) []string { return strings.Fields(fields[name]) }
		if slices.Contains(f("types"), "deb") && strings.ToLower(strings.TrimSpace(fields["enabled"])) != "no" {
			for _, uri := range f("uris") {
				all = append(all, source{uri: uri, suites: f("suites"), components: f("components")})
			}
		}
		fields, last = map[string]string{}, ""
	}
	for in := bufio.NewScanner(r); in.Scan(); {
		text := in.Text()
		switch name, value, ok := strings.Cut(text, ":"); {
		case strings.HasPrefix(text, "#"):
		case strings.TrimSpace(text) == "":
			end()
		case text[0] == ' ' || text[0] == '\t':
			fields[last] += " " + text
		case ok:
			last = strings.ToLower(name)
			fields[last] = value
		}
	}
	end()
	return all
}

// usable tells whether an archive can be handed to the programs that build.
func usable(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && !strings.ContainsAny(uri, " \t\n[]#")
}

// shownURL is an archive's URL without a password.
func shownURL(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return "a mirror"
	}
	u.User = nil
	return u.String()
}
