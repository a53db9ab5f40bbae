package scripts_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"satchel/internal/testenv"
)

// toolchain is the Go that a machine's go.mod names. None has that number.
const toolchain = "1.99.0"

// Programs that stand in for those of a machine.
const (
	oldGo = `[ "$1 $2" != "env GOVERSION" ] || { echo go1.19.8; exit; }; exec "$REAL_GO" "$@"`
	// Go verifies a toolchain with the world's checksum database, so that it takes none of a test's.
	fetches = `case "$1 $2" in
"env GOVERSION") echo go1.19.8 ;;
"mod download")
	mkdir -p "$GOMODCACHE/$3/bin" "$GOMODCACHE/$3/pkg/tool/linux"
	printf '#!/bin/sh\necho %s\n' "${3#*-}" >"$GOMODCACHE/$3/bin/go"
	cp "$GOMODCACHE/$3/bin/go" "$GOMODCACHE/$3/pkg/tool/linux/vet"
	chmod a-w "$GOMODCACHE/$3"/bin/* ;;
*) exec "$REAL_GO" "$@" ;;
esac`
	newGo   = `exec "$REAL_GO" "$@"`
	works   = `exit 0`
	notRoot = `echo 1000`
)

// machine is a checkout with scripts/install alone, and the only programs that
// the script finds there.
type machine struct {
	t                testing.TB
	root, bin, cache string
	env              []string
}

// newMachine has a machine lack nothing, apart from the programs that are given:
// an empty script stands for a program that is not there.
func newMachine(t testing.TB, programs map[string]string) *machine {
	t.Helper()
	testenv.NeedProgram(t, "bash")
	dir := t.TempDir()
	m := &machine{t: t, root: filepath.Join(dir, "satchel"), bin: filepath.Join(dir, "bin"), cache: filepath.Join(dir, "cache")}
	script, err := os.ReadFile("install")
	m.must(err)
	m.write("satchel/scripts/install", string(script))
	m.write("satchel/go.mod", "module satchel\n\ngo "+toolchain+"\n")
	stubs := map[string]string{"go": newGo, "apt-get": works, "sudo": `exec "$@"`}
	for _, name := range []string{"git", "curl", "rg", "jq", "npm", "node", "python3"} {
		stubs[name] = works
	}
	for name, script := range programs {
		stubs[name] = script
	}
	for name, script := range stubs {
		if script != "" {
			m.write("bin/"+name, "#!"+testenv.NeedProgram(t, "bash")+"\n"+script+"\n")
		}
	}
	for _, name := range []string{"bash", "chmod", "cp", "dirname", "env", "id", "ls", "mkdir", "mv", "rm", "sed", "uname"} {
		if _, ok := stubs[name]; !ok {
			m.must(os.Symlink(testenv.NeedProgram(t, name), filepath.Join(m.bin, name)))
		}
	}
	m.env = []string{
		"PATH=" + m.bin, "HOME=" + dir, "XDG_CACHE_HOME=" + m.cache, "REAL_GO=" + testenv.NeedProgram(t, "go"),
		"GOCACHE=" + filepath.Join(dir, "build"), "GOMODCACHE=" + filepath.Join(dir, "modules"), "GOFLAGS=-modcacherw",
		"GOPROXY=off", "GOTOOLCHAIN=auto", "LC_ALL=C",
	}
	return m
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) write(name, content string) {
	m.t.Helper()
	p := filepath.Join(filepath.Dir(m.root), name)
	m.must(os.MkdirAll(filepath.Dir(p), 0o755))
	m.must(os.WriteFile(p, []byte(content), 0o755))
}

// sh runs a script in the checkout, and returns its output and its errors.
func (m *machine) sh(script string) (stdout, stderr string, code int) {
	m.t.Helper()
	cmd := exec.Command(filepath.Join(m.bin, "bash"), "-c", script)
	cmd.Dir, cmd.Env = m.root, m.env
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		m.t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// refusingProxy refuses whatever is asked of it, and returns its URL.
func refusingProxy(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not from here", http.StatusForbidden)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestInstallSaysWhatFailedAndWhy: whichever step fails, the script says what it
// tried, the reason that the program or the proxy gave, and what to do, and stops.
func TestInstallSaysWhatFailedAndWhy(t *testing.T) {
	for name, c := range map[string]struct {
		programs map[string]string
		env      func(m *machine) []string
		says     []string // what was tried, why it failed, what to do
	}{
		"the module proxy refuses an old Go": {
			map[string]string{"go": oldGo},
			func(m *machine) []string { return []string{"GOPROXY=" + refusingProxy(m.t)} },
			[]string{"go mod download golang.org/toolchain@v0.0.1-go" + toolchain, "403 Forbidden", "not from here", "GOPROXY"},
		},
		"the network's proxy refuses an old Go": {
			map[string]string{"go": oldGo},
			func(m *machine) []string {
				return []string{"GOPROXY=https://modules.example", "https_proxy=" + refusingProxy(m.t)}
			},
			[]string{"go mod download golang.org/toolchain@v0.0.1-go" + toolchain, "Forbidden", "https_proxy"},
		},
		"nothing listens where an old Go asks": {
			map[string]string{"go": oldGo},
			func(m *machine) []string {
				s := httptest.NewServer(nil)
				s.Close()
				return []string{"GOPROXY=" + s.URL}
			},
			[]string{"go mod download golang.org/toolchain@v0.0.1-go" + toolchain, "connection refused", "GOPROXY"},
		},
		"the module proxy refuses a Go that fetches by itself": {
			nil,
			func(m *machine) []string { return []string{"GOPROXY=" + refusingProxy(m.t)} },
			[]string{"go version", "403 Forbidden", "GOPROXY"},
		},
		"Go does not run": {
			map[string]string{"go": `echo "go: cannot find GOROOT" >&2; exit 2`}, nil,
			[]string{"go env GOVERSION", "cannot find GOROOT", "Repair"},
		},
		"the toolchain cannot be copied": {
			map[string]string{"go": fetches},
			func(m *machine) []string { return []string{"XDG_CACHE_HOME=/dev/null"} },
			[]string{"mkdir -p /dev/null/satchel", "Not a directory", "XDG_CACHE_HOME"},
		},
		"apt-get has no package lists": {
			map[string]string{"rg": "", "apt-get": `[ "$1" != update ] || { echo "E: the mirror says 403" >&2; exit 100; }`}, nil,
			[]string{"apt-get update", "status 100", "E: the mirror says 403", "ripgrep"},
		},
		"apt-get cannot install": {
			map[string]string{"rg": "", "apt-get": `[ "$1" != install ] || { echo "E: dpkg was interrupted" >&2; exit 100; }`}, nil,
			[]string{"apt-get install", "status 100", "E: dpkg was interrupted", "ripgrep"},
		},
		"there is no apt-get": {
			map[string]string{"rg": "", "apt-get": ""}, nil,
			[]string{"no apt-get", "ripgrep"},
		},
		"there is no sudo": {
			map[string]string{"rg": "", "sudo": "", "id": notRoot}, nil,
			[]string{"sudo", "apt-get install", "ripgrep"},
		},
		"the processor is another": {
			map[string]string{"uname": `echo riscv64`}, nil,
			[]string{"riscv64", "x86-64 and arm64"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, c.programs)
			if c.env != nil {
				m.env = append(m.env, c.env(m)...)
			}
			stdout, stderr, code := m.sh(`scripts/install build`)
			if code != 1 || stdout != "" {
				t.Errorf("status %d with the output %q", code, stdout)
			}
			for _, s := range c.says {
				if !strings.Contains(stderr, s) {
					t.Errorf("it does not say %q:\n%s", s, stderr)
				}
			}
			// A shell that sourced it goes on.
			if stdout, _, _ = m.sh(`. scripts/install build; echo "went on after $?"`); stdout != "went on after 1\n" {
				t.Errorf("after sourcing: %q", stdout)
			}
		})
	}
}

// TestInstallFetchesGoForAnOldOne, and a shell that sources the script has it on
// the PATH and is otherwise as it was.
func TestInstallFetchesGoForAnOldOne(t *testing.T) {
	m := newMachine(t, map[string]string{"go": fetches})
	const state = `{ set +o; shopt; compgen -v | sed "/^BASH_\|^PATH$\|^PIPESTATUS$\|^_$/d"; compgen -A function; }`
	stdout, stderr, code := m.sh(`before=; before=$(` + state + `); . scripts/install build; echo "$?"; [ "$before" = "$(` + state + `)" ] && echo same; go version`)
	if code != 0 || stdout != "0\nsame\ngo"+toolchain+".linux-"+runtime.GOARCH+"\n" {
		t.Errorf("status %d: %s\n%s", code, stdout, stderr)
	}
	m.write("bin/go", "#!/bin/sh\necho go1.19.8\n") // it has what it needs now
	if _, stderr, code := m.sh(`scripts/install build`); code != 0 || stderr != "" {
		t.Errorf("status %d: %s", code, stderr)
	}
}

// TestInstallInstallsWhatIsMissing, as root by sudo.
func TestInstallInstallsWhatIsMissing(t *testing.T) {
	for want, packages := range map[string]string{"build": "ripgrep jq npm nodejs", "e2e": "ripgrep jq npm nodejs chromium"} {
		m := newMachine(t, map[string]string{
			"rg": "", "jq": "", "npm": "", "node": "", "id": notRoot, "sudo": `AS=root exec "$@"`, "apt-get": `echo "$AS: $*"`, "apt-cache": works, "go": `echo go1.99.0`,
		})
		_, stderr, code := m.sh("scripts/install " + want)
		if code != 0 || !strings.Contains(stderr, "root: update") || !strings.Contains(stderr, "root: install") || !strings.Contains(stderr, packages) {
			t.Errorf("%s: status %d: %s", want, code, stderr)
		}
	}
}
