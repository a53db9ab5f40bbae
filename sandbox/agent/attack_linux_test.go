package agent

import (
	"testing"
	"time"

	"satchel/sandbox/protocol"
)

// A command holds a pipe of a command that has ended.
func TestPassedOutputDoesNotHangTheAnswer(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	keeper := s.exec(protocol.ExecRequest{Background: true, Command: `exec python3 -c '
import socket,array,time,os
l=socket.socket(socket.AF_UNIX); l.bind("/tmp/keep"); l.listen()
c,_=l.accept(); m,a,_,_=c.recvmsg(1,socket.CMSG_SPACE(4)); open("/tmp/got","w"); time.sleep(1000)'`})
	start := time.Now()
	r := s.exec(protocol.ExecRequest{Command: `until [ -S /tmp/keep ]; do sleep 0.02; done; echo out; python3 -c '
import socket,array
s=socket.socket(socket.AF_UNIX); s.connect("/tmp/keep"); s.sendmsg([b"x"],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array("i",[1]))])'; until [ -e /tmp/got ]; do sleep 0.02; done`})
	if r.End != protocol.Exited || r.ExitCode != 0 || text(r.Stdout) != "out\n" {
		t.Errorf("%+v", r)
	}
	t.Logf("answered after %v", time.Since(start))
	must(t, s.Kill(t.Context(), keeper.JobID, "KILL"))
}

func TestWithoutGitView(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{noGit: true})
	s.sh("mkdir .git; echo x > .git/config")
	if got := brief(s.collect()); got != "\".git\" opaque dir\n\".git/config\"=x\n\n" {
		t.Errorf("%s", got)
	}
}
