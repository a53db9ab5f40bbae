package agent

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"satchel/sandbox/protocol"
)

// In gVisor, with nothing held up: commands append to files, replace them and make them
// while newer heads of the same files are applied again and again. Every line that a
// command wrote is reported, in some file.
func TestApplyRacesWithCommands(t *testing.T) {
	t.Parallel()
	const files = 40
	seed := map[string]string{}
	for i := range files {
		seed[fmt.Sprint("f", i)] = ""
	}
	s := startSandbox(t, sandboxOption{seed: seed})
	ends := make(chan protocol.JobEnd, 10)
	s.OnJobEnd(func(e protocol.JobEnd) { ends <- e })
	const lines = 1000
	for kind, pause := range map[string]string{"append": "", "hold": "time.sleep(0.001)"} {
		s.exec(protocol.ExecRequest{Background: true, Command: fmt.Sprintf(`exec python3 -c '
import os,time,random
for i in range(%d):
    fd=os.open("f%%d" %% random.randrange(%d), os.O_WRONLY|os.O_APPEND|os.O_CREAT, 0o644)
    %s
    os.write(fd, b"%s %%d\n" %% i); os.close(fd); time.sleep(0.002)
'`, lines, files, pause, kind)})
	}
	seen := map[string]bool{}
	content := map[string]string{} // the newest content told
	note := func() {
		for p, n := range s.collect() {
			switch {
			case n.Deleted:
				delete(content, p)
			case !n.Dir && !n.Busy:
				content[p] = string(n.Content)
			}
		}
		for text := range maps.Values(content) {
			for line := range strings.Lines(text) {
				seen[line] = true
			}
		}
	}
	applied, dirty := 0, 0
	for running := 2; running > 0; {
		select {
		case e := <-ends:
			if running--; e.ExitCode != 0 {
				t.Errorf("%+v", e)
			}
		default:
		}
		note()
		// As on the host, reported content is merged and the newer head applied: here the
		// file becomes empty, and the reported lines are kept.
		var entries []protocol.ApplyEntry
		for i := range files {
			entries = append(entries, put(fmt.Sprint("f", i), fmt.Sprintf("head %d\n", applied)))
		}
		rs, err := s.Apply(t.Context(), entries)
		must(t, err)
		for _, r := range rs {
			switch {
			case r.Dirty:
				dirty++
			case r.Problem != "":
				t.Errorf("%+v", r)
			default:
				applied++
			}
		}
	}
	note()
	for _, kind := range []string{"append", "hold"} {
		for i := range lines {
			if line := fmt.Sprintf("%s %d\n", kind, i); !seen[line] {
				t.Errorf("lost: %q", line)
			}
		}
	}
	t.Logf("%d applied, %d dirty, %d files at the end", applied, dirty, len(content))
}
