package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"satchel/gitstore/damagetest"
)

// cmdFlip damages a byte of a file, or restores it: `flip FILE OFFSET`.
func cmdFlip(ts *testscript.TestScript, neg bool, args []string) {
	at, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(damagetest.TurnFile(ts.MkAbs(args[0]), at))
}

// cmdFlipObject damages a file of a repository's head, or the head itself, or
// restores it: `flipobject REPOSITORY [PATH]`.
func cmdFlipObject(ts *testscript.TestScript, neg bool, args []string) {
	name := "main"
	if len(args) > 1 {
		name += ":" + args[1]
	}
	ts.Check(damagetest.TurnObject(ts.MkAbs(args[0]), name, true))
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
