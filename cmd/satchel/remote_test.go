package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"satchel/gitstore/remotetest"
)

// cmdRemote starts a git server over http with one empty repository: `remote
// NAME [PASSWORD]`. It sets $NAME_remote to the repository's URL and $NAME_dir to
// where it is; the password is in the file NAME.token.
func cmdRemote(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: remote NAME [PASSWORD]")
	}
	o := remotetest.Options{}
	if len(args) == 2 {
		o.Password = args[1]
		ts.Check(os.WriteFile(ts.MkAbs(args[0]+".token"), []byte(args[1]+"\n"), 0o600))
	}
	s := remotetest.New(t, o)
	s.Create(args[0])
	ts.Setenv(args[0]+"_remote", s.URL(args[0]))
	ts.Setenv(args[0]+"_dir", s.Dir(args[0]))
	ts.Defer(s.Close)
}
