package agent

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// The sandbox program becomes the sentry and the gofer of every sandbox, so what any
// of its packages does before main is paid twice for each.
func TestProgramInitialisesLightly(t *testing.T) {
	t.Parallel()
	const (
		mostBytes   = 2 << 20
		mostObjects = 30_000
	)
	exe := buildProgram(t, "satchel/cmd/satchel-sandbox")
	cmd := exec.Command(exe, "probe") // ends as soon as main has begun
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	must(t, err)
	// init path @1.2 ms, 0.34 ms clock, 5678 bytes, 90 allocs
	line := regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, (\d+) allocs$`)
	packages, bytes, objects, worst := 0, 0, 0, ""
	for _, f := range line.FindAllStringSubmatch(string(out), -1) {
		b, err1 := strconv.Atoi(f[2])
		n, err2 := strconv.Atoi(f[3])
		if err1 != nil || err2 != nil {
			t.Fatalf("odd line %q", f[0])
		}
		packages, bytes, objects = packages+1, bytes+b, objects+n
		if b > 512<<10 {
			worst += fmt.Sprintf("%s: %d bytes\n", f[1], b)
		}
	}
	if packages < 50 {
		t.Fatalf("%d packages were seen: the runtime tells it otherwise\n%.500s", packages, out)
	}
	t.Logf("%d packages, %d bytes, %d objects", packages, bytes, objects)
	if bytes > mostBytes || objects > mostObjects {
		t.Errorf("initialisation allocates %d bytes in %d objects, at most %d and %d may be; the most:\n%s",
			bytes, objects, mostBytes, mostObjects, worst)
	}
}
