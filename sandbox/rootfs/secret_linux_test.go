package rootfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/fault"
)

// A mirror with a password, which holds what a URL has to escape.
const secretMirror = "HTTP://user:s%3Acret@mirror.example:8080/debian"

// Everything that the tool is told, and shouts back.
const shouting = `
echo "I: Retrieving http://user:s%3Acret@mirror.example:8080/debian/x"
echo "I: with the password s:cret"
`

// TestAPasswordIsNeitherShownNorAnArgument: the list of processes is for
// everyone to read, and messages end up in logs.
func TestAPasswordIsNeitherShownNorAnArgument(t *testing.T) {
	for name, script := range map[string]string{
		"it works":    smallDebian + shouting,
		"it fails":    smallDebian + shouting + "echo 'E: Failed getting http://user:s%3Acret@mirror.example:8080/debian/Release' >&2; exit 1",
		"no E: lines": smallDebian + shouting + "exit 1",
	} {
		for _, tool := range []string{"debootstrap", "mmdebstrap"} {
			t.Run(tool+": "+name, func(t *testing.T) {
				seen := filepath.Join(t.TempDir(), "seen")
				record := "{ echo \"args $0 $*\"; cat ~/.netrc; [ \"${@: -1}\" != - ] || cat; stat -c %a ~/.netrc; } > " + seen + " 2>/dev/null\n"
				o := options(t, record+script)
				if tool == "mmdebstrap" {
					t.Setenv("PATH", programDir(t, map[string]string{"mmdebstrap": record + "{ :\n" + shouting + "} >&2; echo 'E: no http://user:s%3Acret@mirror.example:8080/debian' >&2; exit 1"}))
					o.Environ = os.Environ()
				}
				o.Mirror = secretMirror
				var told []string
				o.Progress = func(l string, _ bool) { told = append(told, l) }
				r, err := Build(t.Context(), o)
				if err != nil {
					told = append(told, err.Error(), fault.PublicOf(err))
				}
				told = append(told, r.Mirror)
				b, err := os.ReadFile(seen)
				if err != nil {
					t.Fatal(err)
				}
				args, rest, _ := strings.Cut(string(b), "\n")
				for _, l := range append(told, args) {
					if strings.Contains(l, "cret") {
						t.Errorf("the password is in %q", l)
					}
				}
				want := "machine mirror.example\nlogin user\npassword s:cret\n600\n"
				if tool == "mmdebstrap" {
					want = "deb http://user:s%3Acret@mirror.example:8080/debian bookworm main\n"
				} else if !strings.HasSuffix(args, " http://mirror.example:8080/debian") {
					t.Errorf("it was called as %q", args)
				}
				if !strings.HasSuffix(rest, want) {
					t.Errorf("the program read %q, want %q", rest, want)
				}
			})
		}
	}
}

// TestOnlyErrorsAreShown: what a program says on the way is progress.
func TestOnlyErrorsAreShown(t *testing.T) {
	for name, tt := range map[string]struct{ script, want string }{
		"one error":     {"echo 'I: Retrieving x'; echo 'E: no Release' >&2; echo 'I: more'; exit 1", "debootstrap failed: E: no Release"},
		"two errors":    {"echo 'E: a'; echo 'W: b'; echo 'E: c'; exit 1", "debootstrap failed: E: a; E: c"},
		"an early one":  {"echo 'E: a'; for i in {1..50}; do echo $i; done; exit 1", "debootstrap failed: E: a"},
		"warnings":      {"echo 'W: a'; echo 'I: b'; exit 1", "debootstrap failed: W: a"},
		"just a line":   {"echo one; echo two; exit 1", "debootstrap failed: two"},
		"not one word":  {"exit 7", "debootstrap failed: exit status 7"},
		"a flood of it": {"for i in {1..50}; do echo E: $i; done; exit 1", "debootstrap failed: E: 43; E: 44; E: 45; E: 46; E: 47; E: 48; E: 49; E: 50"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Build(t.Context(), options(t, tt.script)); fault.PublicOf(err) != tt.want {
				t.Errorf("%q, want %q", fault.PublicOf(err), tt.want)
			}
		})
	}
}
