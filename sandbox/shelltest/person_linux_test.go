package shelltest_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// expectation is a command and what a person expects of it. Texts are regular
// expressions for the whole of a stream; an empty stderr means none.
type expectation struct {
	name, command  string
	stdout, stderr string
	code           int
	signal         string
}

func (e expectation) check(t *testing.T, r sandbox.Result) {
	t.Helper()
	for _, s := range []struct{ name, got, want string }{{"stdout", r.Stdout.Text, e.stdout}, {"stderr", r.Stderr.Text, e.stderr}} {
		if !regexp.MustCompile(`^(?s:` + s.want + `)$`).MatchString(s.got) {
			t.Errorf("%s is %q, want %q", s.name, s.got, s.want)
		}
	}
	if r.ExitCode != e.code || r.Signal != e.signal || r.End != protocol.Exited {
		t.Errorf("it ended with %d %q (%v), want %d %q", r.ExitCode, r.Signal, r.End, e.code, e.signal)
	}
}

// TestWhoAndWhere: identity, environment, directories and limits are what a
// person at a shell of their own would find.
func TestWhoAndWhere(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"readme.md": "hello\n"}, nil)
	limits := sandbox.DefaultLimits()
	q := func(v any) string { return regexp.QuoteMeta(fmt.Sprint(v)) }
	for _, e := range []expectation{
		{name: "who", command: "whoami; id -u; id -un; id -gn; echo $USER $LOGNAME; hostname; echo $HOSTNAME", stdout: "satchel\n1000\nsatchel\nsatchel\nsatchel satchel\nsatchel\nsatchel\n"},
		{name: "where", command: "pwd; echo $PWD; cd /tmp; cd - > /dev/null; pwd; ls", stdout: "/space\n/space\n/space\nreadme.md\n"},
		{name: "home", command: "echo $HOME ~ ~satchel; cd; pwd; stat -c '%a %U' .; touch x ~/y && ls; getent passwd satchel | cut -d: -f6,7", stdout: "/tmp/home /tmp/home /tmp/home\n/tmp/home\n700 satchel\nx\ny\n/tmp/home:/bin/bash\n"},
		{name: "home again", command: "ls ~; rm ~/x ~/y", stdout: "x\ny\n"},
		{name: "environment", command: "env | sort", stdout: q("GIT_PAGER=cat\nHOME=/tmp/home\nLANG=C.UTF-8\nLOGNAME=satchel\nPAGER=cat\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nPWD=/space\nSHELL=/bin/bash\nSHLVL=1\nTERM=dumb\nUSER=satchel\n_=/usr/bin/env\n")},
		{name: "temporary files", command: "echo ${TMPDIR-unset}; dirname $(mktemp); python3 -c 'import tempfile; print(tempfile.gettempdir())'; stat -c %a /tmp", stdout: "unset\n/tmp\n/tmp\n1777\n"},
		{name: "new files", command: "umask; umask -S; touch /tmp/f; mkdir /tmp/d; stat -c %a /tmp/f /tmp/d", stdout: "0022\nu=rwx,g=rx,o=rx\n644\n755\n"},
		{name: "no terminal", command: "tty; [ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo none; : < /dev/tty", stdout: "not a tty\nnone\n", stderr: ".*/dev/tty: No such device or address\n", code: 1},
		{name: "limits", command: "ulimit -n -u -f -c -v", stdout: `open files +\(-n\) ` + q(limits.OpenFiles) + `\nmax user processes +\(-u\) ` + q(limits.Processes) + `\nfile size +\(blocks, -f\) ` + q(limits.FileSize/1024) + `\ncore file size +\(blocks, -c\) 0\nvirtual memory +\(kbytes, -v\) unlimited\n`},
		{name: "every limit can be listed", command: "ulimit -a > /dev/null && ulimit -Ha | wc -l", stdout: `1\d\n`},
		{name: "processors", command: "[ $(nproc) -le " + q(limits.CPUs) + " ] && [ $(nproc) -ge 1 ] && [ $(nproc) = $(python3 -c 'import os; print(os.cpu_count())') ] && echo ok", stdout: "ok\n"},
		{name: "memory", command: "free -b | awk '/^Mem:/ {print $2}'", stdout: q(limits.Memory) + "\n"},
		{name: "disk", command: "df -B1 --output=size /space /tmp | tail -n2 | tr -d ' '; df -i /space | awk 'NR == 2 {print $2}'", stdout: q(limits.Disk) + "\n" + q(limits.Tmp) + "\n" + q(limits.Inodes) + "\n"},
		{name: "system", command: "uname -s; uname -n; uname -o; [ -e /proc/self/exe ] && echo proc", stdout: "Linux\nsatchel\nGNU/Linux\nproc\n"},
		{name: "shell", command: "echo $0 $# $SHLVL $-; shopt -q login_shell || echo no login; set -o | grep -c on$; [ $BASH = /bin/bash -o $BASH = /usr/bin/bash ] && echo bash; trap; alias; jobs", stdout: "bash 0 1 hBc\nno login\n3\nbash\n"},
		{name: "processes", command: "ps -o comm= -p 1 | cut -c1-8; ps -eo user= | sort -u | grep -vx root; sleep 50 & until ps -o args= -p $! | grep -x 'sleep 50'; do :; done; kill $!", stdout: "agent.*\nsatchel\nsleep 50\n"},
		{name: "zones", command: "date +%Z; TZ=Europe/Berlin date -d @0 +%H%Z; TZ=America/New_York python3 -c 'import time; print(time.strftime(\"%H\", time.localtime(0)))'", stdout: "UTC\n01CET\n19\n"},
		{name: "no network", command: "getent hosts example.org; (: < /dev/tcp/127.0.0.1/80) 2>/dev/null || echo refused; git ls-remote https://example.org/x 2>&1 | grep -o 'Could not resolve host'", stdout: "refused\nCould not resolve host\n"},
		{name: "each command is a new shell", command: "x=1; cd /tmp; export Y=2; set -u; echo $x$Y", stdout: "12\n"},
		{name: "each command is a new shell, again", command: "echo [$x$Y]; pwd", stdout: "\\[\\]\n/space\n"},
	} {
		t.Run(e.name, func(t *testing.T) { e.check(t, s.run(t, e.command)) })
	}
	t.Run("the clock", func(t *testing.T) {
		before := time.Now().Unix()
		now, err := strconv.ParseInt(strings.TrimSpace(s.print(t, "date +%s")), 10, 64)
		if after := time.Now().Unix(); err != nil || now < before || now > after {
			t.Errorf("it is %d inside, and between %d and %d outside, %v", now, before, after, err)
		}
	})
}

// TestLanguage: text of any language is counted, sorted and shown as such.
func TestLanguage(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"Köln/größe 日本.md": "Ünïcode ✓\n"}, nil)
	for _, e := range []expectation{
		{name: "locale", command: "locale charmap; echo $LANG ${LC_ALL-unset}; locale | grep -c C.UTF-8", stdout: "UTF-8\nC.UTF-8 unset\n1\\d\n"},
		{name: "names", command: "ls; ls Köln; echo K*/*; find . -name '*.md'; ls -l Köln | tail -n1 | cut -d: -f2 | cut -c4-", stdout: "Köln\ngröße 日本.md\nKöln/größe 日本.md\n./Köln/größe 日本.md\ngröße 日本.md\n"},
		{name: "characters", command: "wc -m -c < Köln/*; sed 's/./x/g' Köln/*; x=$(cat Köln/*); echo ${#x} ${x^^}; cut -c1-2 <<< ü", stdout: " *10 +14\nxxxxxxxxx\n9 ÜNÏCODE ✓\nü\n"},
		{name: "order", command: "printf '%s\\n' b ä a B Z | sort | tr '\\n' ' '; echo; printf '%s ' {b,B,a,ä}", stdout: "B Z a b ä \nb B a ä "},
		{name: "python", command: "python3 -c 'import sys; print(open(\"Köln/größe 日本.md\").read().strip(), sys.stdout.encoding)'", stdout: "Ünïcode ✓ utf-8\n"},
		{name: "search", command: "grep -o 'ï.*' -r . --include='*.md'; rg -o 'Ü\\w+' Köln; git ls-files", stdout: "./Köln/größe 日本.md:ïcode ✓\n.*Ünïcode\n\"K.*md\"\n"},
	} {
		t.Run(e.name, func(t *testing.T) { e.check(t, s.run(t, e.command)) })
	}
}

// TestNothingWaitsForInput: standard input is at its end, so whatever asks ends
// at once instead of holding the call until its limit.
func TestNothingWaitsForInput(t *testing.T) {
	t.Parallel()
	s := newShell(t, map[string]string{"readme.md": "hello\n"}, nil)
	for _, e := range []expectation{
		{name: "cat", command: "cat", stdout: ""},
		{name: "read", command: "read -r -p 'Password: ' x; echo $?", stdout: "1\n"},
		{name: "select", command: "select x in a b; do break; done; echo $?", stdout: "\n1\n", stderr: ".*#\\? \n?"},
		{name: "wc, sort, sed, awk", command: "wc -c; sort; sed p; awk 1; tr a b; xargs -r echo", stdout: "0\n"},
		{name: "python", command: "python3 -c 'input()'", stderr: ".*EOFError.*", code: 1},
		{name: "interpreters", command: "python3; bash; bash -i 2>/dev/null; echo ended", stdout: "(exit\n)?ended\n"},
		{name: "pager", command: "less readme.md; more readme.md | cat; git log --format=%s", stdout: ".*hello\n.*Start\n"},
		{name: "a question of git's", command: "cd ~ && git init -q r && cd r && echo a > a && git add a && git commit", stderr: "(?:error|hint).*", code: 1},
		{name: "a repository of one's own", command: "cd ~/r && git commit -q -m mine && git log --format='%an %s' && git branch --show-current; rm -rf ~/r", stdout: "satchel mine\nmain\n"},
		{name: "a password for git", command: "git clone -q https://user@127.0.0.1/x /tmp/x", stderr: "fatal: .*", code: 128},
		{name: "rm of a protected file", command: "cd ~; touch f; chmod 0 f; rm -i f; rm -f f; ls", stdout: "", stderr: "rm: remove write-protected regular empty file 'f'\\? ?"},
		{name: "cp and mv that ask", command: "cd ~; echo 1 > a; echo 2 > b; cp -i a b; mv -i a b; cat a b; rm a b", stdout: "1\n2\n", stderr: "cp: overwrite 'b'\\? (?:\n?not replaced)?.*mv: overwrite 'b'\\? .*"},
	} {
		t.Run(e.name, func(t *testing.T) { e.check(t, s.run(t, e.command)) })
	}
}

// TestEnds: the exit code is the shell's own, and a signal is reported by its name.
func TestEnds(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil, nil)
	for _, e := range []expectation{
		{name: "success", command: "true"},
		{name: "failure", command: "false", code: 1},
		{name: "a code", command: "exit 42", code: 42},
		{name: "a code over 255", command: "exit 300", code: 44},
		{name: "no such command", command: "nosuchcommand", stderr: "bash: line 1: nosuchcommand: command not found\n", code: 127},
		{name: "no such file", command: "./nosuchfile", stderr: "bash: line 1: ./nosuchfile: No such file or directory\n", code: 127},
		{name: "not executable", command: "touch f; ./f", stderr: "bash: line 1: ./f: Permission denied\n", code: 126},
		{name: "a directory", command: "/tmp", stderr: "bash: line 1: /tmp: Is a directory\n", code: 126},
		{name: "a syntax error", command: "if", stderr: ".*syntax error: unexpected end of file\n", code: 2},
		{name: "SIGTERM", command: "kill $$; sleep 9", code: 143, signal: "SIGTERM"},
		{name: "SIGKILL", command: "kill -9 $$", code: 137, signal: "SIGKILL"},
		{name: "SIGSEGV", command: "kill -SEGV $$", code: 139, signal: "SIGSEGV"},
		{name: "SIGINT", command: "kill -INT $$; sleep 9", code: 130, signal: "SIGINT"},
		{name: "SIGABRT of a child", command: "(kill -ABRT $BASHPID); echo $?", stdout: "134\n", stderr: "bash: line 1: +\\d+ Aborted .*\n"},
		{name: "a signal that a trap answers", command: "trap 'exit 5' TERM; kill $$; sleep 9", code: 5},
		{name: "a child's signal is a code", command: "sleep 9 & kill -9 $!; wait $!", code: 137, stderr: "(?:bash: line 1: +\\d+ Killed .*\n)?"},
		{name: "timeout", command: "timeout 0.1 sleep 9", code: 124},
		{name: "the last of a pipe", command: "false | true"},
		{name: "pipefail", command: "set -o pipefail; false | true", code: 1},
		{name: "SIGPIPE inside a pipe", command: "yes | head -n1; echo ${PIPESTATUS[0]}", stdout: "y\n141\n"},
		{name: "a file over the limit", command: "head -c 200M /dev/zero > big; echo $?; rm big", stdout: "153\n", stderr: "(?:bash: line 1: +\\d+ File size limit exceeded.*\n)?"},
		{name: "the space is full", command: "for i in 1 2 3; do head -c 100M /dev/zero > f$i || break; done; rm f?", stderr: "head: (?:error writing|write error).*No space left on device\n"},
	} {
		t.Run(e.name, func(t *testing.T) { e.check(t, s.run(t, e.command)) })
	}
}
