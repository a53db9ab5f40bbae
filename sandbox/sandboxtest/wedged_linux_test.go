package sandboxtest_test

// A sandbox that its commands use up is there for the next command all the
// same.

import (
	"strconv"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/sandbox"
	"satchel/sandbox/gvisor"
)

// TestPainTooManyOpenFiles: however few files the machine lets a sandbox's
// processes open, a command that looks at all of /usr leaves the next one its
// programs.
func TestPainTooManyOpenFiles(t *testing.T) {
	t.Parallel()
	for _, openFiles := range []int{1024} {
		t.Run(strconv.Itoa(openFiles), func(t *testing.T) {
			c := newCell(t, nil, func(o *gvisor.Options) { o.OpenFiles = openFiles })
			c.must("echo f > f")
			if r, err := c.exec(c.request("rm -rf /usr >/dev/null 2>&1; echo f > f")); err != nil {
				t.Fatalf("%+v, %v", r, err)
			}
			c.works("looking at everything")
		})
	}
}

// TestPainWedgedSession: whatever a command does to its sandbox, the next one
// works.
func TestPainWedgedSession(t *testing.T) {
	t.Parallel()
	c := newCell(t, func(o *sandbox.Options) {
		quick(o)
		o.Limits = sandbox.DefaultLimits()
		o.Limits.Processes, o.Limits.Memory, o.Limits.Disk, o.Limits.Tmp = 64, 256<<20, 32<<20, 16<<20
		o.WallTime, o.Grace = 2*time.Second, 200*time.Millisecond
	}, nil)
	for name, command := range map[string]string{
		"a fork bomb":                  ":(){ :|:& };:",
		"a fork bomb that ignores":     "trap '' TERM; b(){ b & b & wait; }; b",
		"killing everything":           "kill -9 -1; sleep 1",
		"stopping everything":          "(sleep 100 &) ; kill -STOP -1; kill -STOP $$",
		"closing its streams":          "exec 0>&- 1>&- 2>&-; sleep 0.1",
		"a full space":                 "yes | head -c 60M > full; rm -f full; true",
		"a full /tmp":                  "yes > /tmp/full",
		"removing everything it may":   "rm -rf --no-preserve-root / 2>/dev/null; git init -q . 2>/dev/null; mkdir -p docs; echo f > f",
		"modes without rights":         "mkdir -p locked/x; echo 1 > locked/x/y; chmod 000 locked/x locked; true",
		"endless output":               "yes",
		"endless output without lines": "tr '\\0' x < /dev/zero",
		"control sequences":            "printf '\\033[2J\\033]0;x\\007\\000\\377%.0s' {1..5000}",
		"a shell that waits":           "read x; exec bash -i",
		"a deep directory":             "for i in {1..400}; do mkdir d && cd d || break; done; rm -rf d; true",
		"odd names":                    "touch -- $'a\\nb' $'\\377' '-rf' ' ' '*'; rm -f -- $'a\\nb' $'\\377' '-rf' ' ' '*'",
		"all memory":                   "head -c 2G /dev/zero | tail",
		"working in a removed place":   "mkdir gone; cd gone; rmdir ../gone; (sleep 2; touch x) & sleep 0.1",
	} {
		if _, err := c.exec(c.request(command)); err != nil && fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
		c.works(name)
	}
}
