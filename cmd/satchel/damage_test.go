package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

func turnOver(ts *testscript.TestScript, file string, at int) {
	b, err := os.ReadFile(file)
	ts.Check(err)
	b[at] ^= 4
	ts.Check(os.Chmod(file, 0o600))
	ts.Check(os.WriteFile(file, b, 0o600))
}

// cmdFlip turns a bit of a file over, or back: `flip FILE OFFSET`.
func cmdFlip(ts *testscript.TestScript, neg bool, args []string) {
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	turnOver(ts, ts.MkAbs(args[0]), at)
}

// cmdFlipObject turns a bit over in the middle of what a repository's pack has of a
// file of its head, or of the head itself, or back: `flipobject REPOSITORY [PATH]`.
func cmdFlipObject(ts *testscript.TestScript, neg bool, args []string) {
	repo, name := ts.MkAbs(args[0]), "main"
	if len(args) > 1 {
		name += ":" + args[1]
	}
	git := func(args ...string) string {
		ts.Check(ts.Exec("git", append([]string{"--git-dir", repo}, args...)...))
		return strings.TrimSpace(ts.ReadFile("stdout"))
	}
	object := git("rev-parse", name)
	packs, err := filepath.Glob(filepath.Join(repo, "objects", "pack", "*.pack"))
	ts.Check(err)
	for _, pack := range packs {
		st, err := os.Stat(pack)
		ts.Check(err)
		at, ends := 0, []int{int(st.Size()) - 20}
		// git show-index reads its standard input.
		ts.Check(ts.Exec("bash", "-c", fmt.Sprintf("git show-index < '%s'", strings.TrimSuffix(pack, ".pack")+".idx")))
		lines := bufio.NewScanner(bytes.NewReader([]byte(ts.ReadFile("stdout"))))
		for lines.Scan() {
			f := strings.Fields(lines.Text())
			off, err := strconv.Atoi(f[0])
			ts.Check(err)
			ends = append(ends, off)
			if f[1] == object {
				at = off
			}
		}
		if at == 0 {
			continue
		}
		slices.Sort(ends)
		end := ends[slices.Index(ends, at)+1]
		turnOver(ts, pack, (at+end)/2)
		return
	}
	ts.Fatalf("no pack has %s", object)
}

// cmdRefused asserts that every command says on one line which database is at
// fault and that a copy takes its place, and exits with 1: `refused`.
func cmdRefused(ts *testscript.TestScript, neg bool, args []string) {
	file := filepath.Join(ts.Getenv("DATA"), "satchel.db")
	before, _ := os.ReadFile(file)
	for _, command := range []string{"user list", "space list", "token create --user ann", "search x", "serve --listen 127.0.0.1:0"} {
		err := ts.Exec("satchel", strings.Fields(command)...)
		said := ts.ReadFile("stderr")
		if err == nil || !strings.Contains(err.Error(), "exit status 1") {
			ts.Fatalf("satchel %s: %v", command, err)
		}
		if strings.Count(said, "\n") != 1 || !strings.Contains(said, file) || !strings.Contains(said, "backup") {
			ts.Fatalf("satchel %s says %q", command, said)
		}
	}
	if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
		ts.Fatalf("the file was changed")
	}
}
