package agent

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/protocol"
)

// modelFile is what a host knows of a file: all that git keeps.
type modelFile struct {
	mode space.Mode
	sum  string // of the content; a link's target
	seed bool   // still the checkout's
	bad  bool   // told with a problem: refused aloud
}

// model is a host that trusts every report.
type model map[string]modelFile

func sum(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

// under lists the files below a directory.
func (m model) under(dir string) []string {
	var out []string
	for p := range m {
		if strings.HasPrefix(p, dir+"/") {
			out = append(out, p)
		}
	}
	return out
}

// take applies a batch except some writes, which must be reported again. Deletions come
// first; an opaque directory only hides the checkout's files.
func (m model) take(b protocol.Batch, except map[string]bool) {
	for _, e := range b.Entries {
		switch {
		case e.Deleted:
			delete(m, e.Path)
			for _, p := range m.under(e.Path) {
				delete(m, p)
			}
		case e.Dir:
			delete(m, e.Path)
			for _, p := range m.under(e.Path) {
				if e.Opaque && m[p].seed {
					delete(m, p)
				}
			}
		}
	}
	for _, e := range b.Entries {
		if e.Deleted || e.Dir && e.Problem == "" || except[e.Path] {
			continue
		}
		f := modelFile{mode: e.Mode, sum: sum(e.Content), bad: e.Problem != ""}
		if e.Mode == space.Symlink {
			f.sum = string(e.Content)
		}
		m.put(e.Path, f)
	}
}

// put notes a file, and what it excludes.
func (m model) put(p string, f modelFile) {
	for _, q := range m.under(p) {
		delete(m, q)
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		delete(m, dir)
	}
	m[p] = f
}

// walker is the other witness: what a command sees.
const walker = `
import os,sys,stat,hashlib,base64
def walk(d):
    for e in os.scandir(d):
        p=e.path[2:]
        if p==b".git": continue
        s=e.stat(follow_symlinks=False); k=b"o"; x=b"-"
        if stat.S_ISDIR(s.st_mode): walk(e.path); continue
        if stat.S_ISLNK(s.st_mode): k=b"l"; x=base64.b64encode(os.readlink(e.path))
        elif stat.S_ISREG(s.st_mode):
            try: x=hashlib.sha256(open(e.path,"rb").read()).hexdigest().encode(); k=b"x" if s.st_mode&0o111 else b"f"
            except PermissionError: k=b"o"
        sys.stdout.buffer.write(k+b" "+(x or b"=")+b" "+base64.b64encode(p)+b"\n")
walk(b".")
`

func walked(t *testing.T, s *sandbox) model {
	t.Helper()
	r := s.exec(protocol.ExecRequest{Command: "python3 /tmp/walk.py", HeadTail: 4 << 20})
	if r.ExitCode != 0 || r.Stdout.Dropped > 0 {
		t.Fatalf("walking: %d %s", r.ExitCode, text(r.Stderr))
	}
	m := model{}
	for line := range strings.Lines(text(r.Stdout)) {
		f := strings.Fields(line)
		p, err := base64.StdEncoding.DecodeString(f[2])
		must(t, err)
		switch f[0] {
		case "f":
			m[string(p)] = modelFile{mode: space.Regular, sum: f[1]}
		case "x":
			m[string(p)] = modelFile{mode: space.Executable, sum: f[1]}
		case "l":
			target, err := base64.StdEncoding.DecodeString(f[1])
			must(t, err)
			m[string(p)] = modelFile{mode: space.Symlink, sum: string(target)}
		default:
			m[string(p)] = modelFile{bad: true}
		}
	}
	return m
}

// shellQuote writes bytes so that bash reads them back.
func shellQuote(s string) string {
	var w strings.Builder
	w.WriteString("$'")
	for i := range len(s) {
		fmt.Fprintf(&w, `\x%02x`, s[i])
	}
	return w.String() + "'"
}

// oddNames are such as file systems allow and programs stumble over.
var oddNames = []string{
	"a", "b", "c", "d", "notes.md", "A", "Notes.md", ".hidden", "-rf", "--", "*", "?", " ", "  x", "trailing ", "trailing.", "...", "..a", "~",
	"new\nline", "\n", "tab\t", "\x01", "\x7f", "\x1b[31m", "\xff\xfe", "bad\xc3", "\xed\xa0\x80", "ü", "u\u0308", "日本語", "\u202etxt.exe", "\u200b",
	`\`, `\n`, `"`, "'", "$(id)", "`id`", ";", "&", "|", ">", "#", "!", "%s", "con", "aux.md", "a:b", "git~1", ".gitmodules", ".gitattributes",
	strings.Repeat("x", 255), strings.Repeat("ü", 127), ".satchel-apply-0", "x.conflict-0123456789",
}

// operations makes one random shell command after the other.
type operations struct {
	*rand.Rand
	known func() []string // paths that there may be
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func (o *operations) fresh() string {
	var segs []string
	for range 1 + o.IntN(4) {
		segs = append(segs, pick(o.Rand, oddNames))
	}
	return strings.Join(segs, "/")
}

// path returns a path that may exist, a part of one, or a new one.
func (o *operations) path() string {
	known := o.known()
	if len(known) == 0 || o.IntN(4) == 0 {
		return o.fresh()
	}
	p := pick(o.Rand, known)
	for o.IntN(3) == 0 && path.Dir(p) != "." {
		p = path.Dir(p)
	}
	if o.IntN(6) == 0 {
		p = path.Join(p, pick(o.Rand, oddNames))
	}
	return p
}

func (o *operations) command() string {
	q := func(p string) string { return shellQuote("./" + p) }
	p, r := o.path(), o.path()
	parent := "mkdir -p -- " + q(path.Dir(p)) + ";"
	n := o.IntN(1000)
	switch o.IntN(24) {
	case 0, 1, 2:
		return fmt.Sprintf("%s [ -p %s ] || echo %d > %[2]s", parent, q(p), n)
	case 3:
		return fmt.Sprintf("[ -p %s ] || echo %d >> %[1]s", q(p), n)
	case 4:
		return "rm -f " + q(p)
	case 5:
		return "rm -rf " + q(p)
	case 6:
		return fmt.Sprintf("mkdir -p %s; for i in 1 2 3 4; do echo %d > %[1]s/$i; done", q(p), n)
	case 7:
		return "mkdir -p " + q(p)
	case 8, 9:
		return "mv -- " + q(p) + " " + q(r)
	case 10:
		return parent + "mv -T -- " + q(r) + " " + q(p)
	case 11:
		return parent + "ln -sfn " + shellQuote(pick(o.Rand, []string{"a", "../b", "/etc/passwd", "\xff", "x\ny", ".."})) + " " + q(p)
	case 12:
		return parent + "ln -f " + q(r) + " " + q(p)
	case 13:
		return parent + "[ -p " + q(p) + " ] || cp -a " + q(r) + " " + q(p)
	case 14:
		return "chmod " + pick(o.Rand, []string{"755", "644", "u+x", "600", "0"}) + " " + q(p) + "; find " + q(p) + " -type d -exec chmod 755 {} +"
	case 15:
		return fmt.Sprintf("truncate -s %d %s", o.IntN(70_000), q(p))
	case 16:
		return fmt.Sprintf("touch -h -d @%d %s", n, q(p))
	case 17:
		return fmt.Sprintf("rm -rf %[1]s; mkdir %[1]s; echo %[2]d > %[1]s/%[3]s", q(p), n, shellQuote(pick(o.Rand, oddNames)))
	case 18:
		return fmt.Sprintf("rm -rf %[1]s; %[2]s echo %[3]d > %[1]s", q(p), parent, n)
	case 19:
		return parent + "mkfifo " + q(p)
	case 20:
		return fmt.Sprintf("printf %d 1<>%s", n, q(p))
	case 21:
		return fmt.Sprintf("[ -f %[1]s ] && t=$(stat -c %%y %[1]s) && echo %[2]d > %[1]s && touch -d \"$t\" %[1]s", q(p), n)
	case 22:
		if o.IntN(4) == 0 {
			return fmt.Sprintf("rm -rf ./repo; git init -q ./repo && cd ./repo && echo %d > f && git add f && git -c user.name=a -c user.email=b commit -qm x; cd ..; git clone -q ./repo %s; git -C ./repo worktree add -q ../wt-%d", n, q(p), n)
		}
		return "[ -f " + q(p) + " ] && sed -i s/1/2/ " + q(p)
	default:
		return "mv " + q(p) + " ./moved; mkdir -p " + q(r) + "; mv ./moved " + q(r)
	}
}

// However commands change the space, the reports together match what a command sees there:
// nothing is missed, and paths that cannot be reported have a Problem.
// SATCHEL_TEST_TREE_SEED chooses other changes.
func TestCollectedIsWhatIsThere(t *testing.T) {
	t.Parallel()
	steps, seed := 12, 4
	if testenv.Soak() {
		steps = 2000
	}
	if n, err := strconv.Atoi(os.Getenv("SATCHEL_TEST_TREE_SEED")); err == nil {
		seed = n
	}
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	checkout := map[string]string{"top": "1"}
	for i := range 40 {
		checkout[fmt.Sprintf("%c/%c/%d.md", 'a'+i%3, 'a'+i%5, i)] = strconv.Itoa(i)
	}
	s := startSandbox(t, sandboxOption{seed: checkout})
	s.sh("cat > /tmp/walk.py <<'E'" + walker + "E\n")
	m := model{}
	for p, content := range checkout {
		m[p] = modelFile{mode: space.Executable, sum: sum([]byte(content)), seed: true}
	}
	o := &operations{r, func() []string { return slices.Sorted(maps.Keys(m)) }}
	var history []string
	for step := range steps {
		var ops []string
		for range 1 + r.IntN(5) {
			ops = append(ops, "("+o.command()+")")
		}
		command := strings.Join(ops, "\n")
		history = append(history, command)
		done := s.exec(protocol.ExecRequest{Command: "exec 2>/dev/null\n" + command + "\nfind . -path ./.git -prune -o -size +300k -type f -exec rm -f {} + ; :", DetachAfter: 5 * time.Minute})
		if done.End != protocol.Exited {
			t.Fatalf("seed %d, step %d does not end:\n%s\n%s", seed, step, command, s.sh("ps axww -o pid,ppid,stat,args"))
		}
		last, left := uint64(0), false // the batch that was cut; what a new collection has to tell
		for rounds := 0; ; rounds++ {
			limits := protocol.CollectLimits{After: last}
			if r.IntN(4) == 0 {
				limits.Entries = 7
			}
			b := s.batch(limits)
			except := map[string]bool{}
			if r.IntN(3) == 0 {
				for _, e := range b.Entries {
					if e.Busy || !e.Deleted && !e.Dir && rounds < 3 && r.IntN(3) == 0 {
						except[e.Path] = true
					}
				}
			}
			switch {
			case r.IntN(10) == 0 && rounds < 3: // not acknowledged: all is told again
				continue
			default:
				m.take(b, except)
				must(t, s.Ack(t.Context(), b.ID, slices.Collect(maps.Keys(except))))
			}
			if last = b.ID; !b.More {
				last = 0
			}
			if left = left || len(except) > 0; !b.More {
				if !left {
					break
				}
				left = false
			}
			if rounds > 1000 {
				t.Fatal("does not end")
			}
		}
		applyToModel(t, s, r, m)
		if step%3 == 2 || step == steps-1 {
			if diff := difference(m, walked(t, s)); diff != "" {
				t.Fatalf("seed %d, step %d: told (-) and there (+):\n%s\nlast commands:\n%s", seed, step, diff, strings.Join(history[max(0, len(history)-3):], "\n---\n"))
			}
		}
	}
	t.Logf("%d steps, %d paths at the end", steps, len(m))
}

// applyToModel has the host put or delete a file, as a newer head would.
func applyToModel(t *testing.T, s *sandbox, r *rand.Rand, m model) {
	t.Helper()
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(p string) bool {
		_, err := space.ParsePath(p)
		return err != nil || m[p].bad
	})
	if len(known) == 0 {
		return
	}
	p := pick(r, known)
	n := put(p, fmt.Sprint("applied ", r.IntN(1000)))
	if r.IntN(3) == 0 {
		n = del(p)
	}
	rs, err := s.Apply(t.Context(), []protocol.ApplyEntry{n})
	must(t, err)
	switch {
	case rs[0].Dirty || rs[0].Problem != "":
		t.Errorf("applying %q, which the host knows: %+v", p, rs[0])
	case n.Delete:
		delete(m, p)
	default:
		m.put(p, modelFile{mode: n.Mode, sum: sum(n.Content)})
	}
}

func difference(reported, there model) string {
	var w strings.Builder
	for _, p := range slices.Sorted(maps.Keys(reported)) {
		a, b := reported[p], there[p]
		_, ok := there[p]
		if !ok || a.bad != b.bad || !a.bad && (a.mode != b.mode || a.sum != b.sum) {
			fmt.Fprintf(&w, "- %q %+v\n", p, a)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(there)) {
		if a, ok := reported[p]; !ok || a.bad != there[p].bad || !a.bad && (a.mode != there[p].mode || a.sum != there[p].sum) {
			fmt.Fprintf(&w, "+ %q %+v\n", p, there[p])
		}
	}
	return w.String()
}
