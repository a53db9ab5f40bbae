package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"satchel/internal/fault"
)

// SystemFile is the configuration file of a server that runs as a system service.
const SystemFile = "/etc/satchel/satchel.yaml"

// fileName is the name of the configuration file in the data directory.
const fileName = "satchel.yaml"

// maxFile is the maximum size of the configuration file in bytes.
const maxFile = 1 << 20

// Source is the input of Load.
type Source struct {
	// Flags holds the command's flags of AddFlags and AddServerFlags. It may be nil. Load uses
	// only flags that the command line sets.
	Flags *pflag.FlagSet
	// Environ is the environment in the form of os.Environ.
	Environ []string
	// SystemFile is the file that is tried last. Commands set it to the constant SystemFile.
	SystemFile string
	// WorkDir is the base of a relative --data or --config. Empty means the current directory.
	WorkDir string
	// CheckSource checks an entry of the list sources. known are the settings of the entry's
	// kind, or nil if there is no such kind. The error is a fault that names the wrong key. If
	// CheckSource is nil, the settings of kinds are not checked.
	CheckSource func(SyncedSource) (known []string, err error)
}

// Mistake is one mistake in a configuration.
type Mistake struct {
	// Where is the place of the mistake, such as "file:line:column", a variable or a flag.
	Where string
	// What is a sentence without a full stop.
	What string
}

// Mistakes lists all mistakes in the order in which they are found. It is the cause of
// Load's fault.Invalid.
type Mistakes []Mistake

func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, x := range m {
		lines[i] = x.Where + ": " + x.What
	}
	return strings.Join(lines, "\n")
}

// flagged is the prefix of Where for a flag.
const flagged = "flag --"

// OfFlags reports whether a flag has a mistake. Then the command line itself is wrong.
func (m Mistakes) OfFlags() bool {
	return slices.ContainsFunc(m, func(x Mistake) bool { return strings.HasPrefix(x.Where, flagged) })
}

// loader collects values and mistakes.
type loader struct {
	src      Source
	keys     []key
	env      map[string]string // the variables with the prefix SATCHEL_ that are not empty
	cfg      Config
	mistakes Mistakes
	origin   map[string]string // where each key was set, without keys that have their default
	spoilt   map[string]bool   // keys with a mistake
}

// Load reads the configuration. The error is a fault.Invalid with every mistake (see
// Mistakes), each on its own line.
func Load(src Source) (*Config, error) {
	l := &loader{src: src, env: map[string]string{}, origin: map[string]string{}, spoilt: map[string]bool{}}
	l.keys = keys(&l.cfg)
	for i := range l.keys {
		if k := &l.keys[i]; k.path != "data_dir" && k.path != "database.url" {
			if err := k.set(k.def); err != nil {
				return nil, fmt.Errorf("default of %s: %w", k.path, err)
			}
		}
	}
	l.readEnviron()
	// Finding the file needs the data directory, so its key is read first. It is set again
	// after the file, because a flag overrides the file.
	l.applyOutside(func(k *key) bool { return k.path == "data_dir" })
	if l.dataDirIsFile(); len(l.mistakes) > 0 && l.spoilt["data_dir"] {
		return nil, fault.Wrap(l.mistakes, fault.Invalid, "%s", l.mistakes.Error())
	}
	name, err := l.findFile()
	if err != nil {
		l.mistake(name, "%s", err)
	} else if name != "" {
		l.readFile(name)
		l.cfg.File = name
	}
	l.applyOutside(func(*key) bool { return true })
	if l.cfg.DataDir == "" && !l.spoilt["data_dir"] {
		if l.cfg.DataDir, err = DataDir(l.lookup); err != nil {
			l.mistake("data_dir", "%s", fault.PublicOf(err))
		}
	}
	l.validate()
	if len(l.mistakes) > 0 {
		return nil, fault.Wrap(l.mistakes, fault.Invalid, "%s", l.mistakes.Error())
	}
	l.cfg.Server.PublicURL = strings.TrimSuffix(l.cfg.Server.PublicURL, "/")
	return &l.cfg, nil
}

// DataDir returns the data directory that is used if neither a flag nor a file names one:
// $SATCHEL_DATA_DIR, or else satchel in $XDG_DATA_HOME, or else ~/.local/share/satchel. lookup
// is os.LookupEnv or a replacement.
func DataDir(lookup func(string) (string, bool)) (string, error) {
	if d, ok := lookup("SATCHEL_DATA_DIR"); ok && d != "" {
		return filepath.Abs(d)
	}
	// Relative paths are ignored, as the XDG specification requires.
	if d, ok := lookup("XDG_DATA_HOME"); ok && filepath.IsAbs(d) {
		return filepath.Join(d, "satchel"), nil
	}
	home := "HOME"
	if runtime.GOOS == "windows" {
		home = "USERPROFILE"
	}
	if d, ok := lookup(home); ok && filepath.IsAbs(d) {
		return filepath.Join(d, ".local", "share", "satchel"), nil
	}
	return "", fault.New(fault.Invalid, "there is no home directory to keep data in; name a directory with --data")
}

// dataDirIsFile reports a mistake if the path of the data directory is a file. Otherwise
// each access below it would fail with a less clear error.
func (l *loader) dataDirIsFile() {
	if st, err := os.Stat(l.cfg.DataDir); l.cfg.DataDir == "" || err != nil || st.IsDir() {
		return
	}
	l.spoilt["data_dir"] = true
	l.mistake(l.where("data_dir"), "%s is a file; name a directory", l.cfg.DataDir)
}

// findFile returns the path of the file to read, or "". A file that a flag or a variable names
// is returned even if it does not exist, so that reading it fails.
func (l *loader) findFile() (string, error) {
	if f := l.flag("config"); f != "" {
		return l.abs(f), nil
	}
	if f := l.env["SATCHEL_CONFIG"]; f != "" {
		return l.abs(f), nil
	}
	dir := l.cfg.DataDir
	if dir == "" {
		dir, _ = DataDir(l.lookup) // an error is reported later if nothing names a directory
	}
	for _, f := range []string{filepath.Join(dir, fileName), l.src.SystemFile} {
		if f == fileName || f == "" {
			continue
		}
		_, err := os.Stat(f)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return f, fmt.Errorf("it cannot be accessed: %s", reason(err))
		}
	}
	return "", nil
}

func (l *loader) readFile(name string) {
	f, err := os.Open(name)
	if err != nil {
		l.mistake(name, "it cannot be read: %s", reason(err))
		return
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		l.mistake(name, "it cannot be read: %s", reason(err))
		return
	}
	if len(text) > maxFile {
		l.mistake(name, "it has more than %s, which no configuration needs", FormatSize(maxFile))
		return
	}
	l.readYAML(name, text)
}

// reason returns why a file could not be read, without the file's name.
func reason(err error) string {
	var e *fs.PathError
	if errors.As(err, &e) {
		err = e.Err
	}
	return err.Error()
}

// notOurs reports whether a variable with the prefix SATCHEL_ is valid although it is not a key.
func notOurs(name string) bool {
	switch name {
	case "SATCHEL_CONFIG", // the configuration file
		"SATCHEL_TOKEN", "SATCHEL_URL", // for commands that connect to a server
		// Kubernetes sets these in every container if there is a service with the name
		// satchel.
		"SATCHEL_SERVICE_HOST", "SATCHEL_PORT":
		return true
	}
	return strings.HasPrefix(name, "SATCHEL_TEST_") || strings.HasPrefix(name, "SATCHEL_SERVICE_PORT") || strings.HasPrefix(name, "SATCHEL_PORT_")
}

// readEnviron reads the variables with the prefix SATCHEL_, and reports unknown ones. An empty
// variable counts as unset, because many tools unset variables in this way.
func (l *loader) readEnviron() {
	known := make([]string, 0, len(l.keys))
	for i := range l.keys {
		known = append(known, l.keys[i].env())
	}
	for _, kv := range l.src.Environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "SATCHEL_") || value == "" {
			continue
		}
		l.env[name] = value
		if !slices.Contains(known, name) && !notOurs(name) {
			l.unknown(name, "such variable", l.nearestVariable(name, append(known, "SATCHEL_CONFIG", "SATCHEL_TOKEN", "SATCHEL_URL")))
		}
	}
}

// applyOutside sets the keys that have a variable or a flag.
func (l *loader) applyOutside(want func(*key) bool) {
	for i := range l.keys {
		k := &l.keys[i]
		if !want(k) {
			continue
		}
		where, text := k.env(), l.env[k.env()]
		given := text != ""
		if l.src.Flags != nil {
			if f := l.src.Flags.Lookup(k.flag); f != nil && f.Changed {
				where, text, given = flagged+k.flag, f.Value.String(), true
			}
		}
		if k.path == "data_dir" {
			text = l.abs(text)
		}
		if given {
			l.set(k, where, text)
		}
	}
}

func (l *loader) set(k *key, where, text string) {
	l.origin[k.path] = where
	if err := k.set(text); err != nil {
		l.spoil(k, where, "%s must be %s%s", k.path, k.form, l.got(k, text))
	}
}

func (l *loader) got(k *key, text string) string {
	if k.secret {
		return ""
	}
	return fmt.Sprintf(", not %.80q", text)
}

func (l *loader) validate() {
	for i := range l.keys {
		k := &l.keys[i]
		if l.spoilt[k.path] {
			continue
		}
		if why := k.check(); why != "" {
			l.spoil(k, l.where(k.path), "%s: %s", k.path, why)
		}
	}
	for _, r := range l.cfg.relations() {
		if !r.broken || l.spoilt[r.key] || l.spoilt[r.other] {
			continue
		}
		where := l.origin[r.key]
		if where == "" {
			where = l.where(r.other)
		}
		l.mistake(where, "%s%s: %s%s", r.key, l.shown(r.key, ""), r.why, l.shown(r.other, r.other))
	}
}

// shown returns a key's value in brackets, or "" if there is no value. For a secret key, it
// shows the argument secret instead of the value.
func (l *loader) shown(path, secret string) string {
	i := slices.IndexFunc(l.keys, func(k key) bool { return k.path == path })
	v := l.keys[i].text()
	if l.keys[i].secret && v != "" {
		v = secret // never its value
	}
	if v == "" {
		return ""
	}
	return " (" + v + ")"
}

func (l *loader) where(path string) string {
	if w := l.origin[path]; w != "" {
		return w
	}
	return "default"
}

func (l *loader) mistake(where, format string, args ...any) {
	l.mistakes = append(l.mistakes, Mistake{where, fmt.Sprintf(format, args...)})
}

func (l *loader) spoil(k *key, where, format string, args ...any) {
	l.spoilt[k.path] = true
	l.mistake(where, format, args...)
}

func (l *loader) unknown(where, what, near string) {
	if near == "" {
		l.mistake(where, "there is no %s", what)
		return
	}
	l.mistake(where, "there is no %s; did you mean %s?", what, near)
}

func (l *loader) flag(name string) string {
	if l.src.Flags == nil {
		return ""
	}
	if f := l.src.Flags.Lookup(name); f != nil && f.Changed {
		return f.Value.String()
	}
	return ""
}

func (l *loader) lookup(name string) (string, bool) {
	if v, ok := l.env[name]; ok {
		return v, true
	}
	for _, kv := range l.src.Environ {
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			return v, true
		}
	}
	return "", false
}

// abs returns the absolute form of a path that a person gave. A relative path begins at
// Source.WorkDir.
func (l *loader) abs(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	if l.src.WorkDir != "" {
		return filepath.Join(l.src.WorkDir, p)
	}
	if a, err := filepath.Abs(p); err == nil {
		return a
	}
	return p
}
