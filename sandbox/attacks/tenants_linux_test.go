package attacks_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"satchel/internal/space"
	"satchel/sandbox"
)

// TestAttackOtherTenants: users with the same paths, ids that begin alike,
// created at once and attacking each other: each sees and changes what is its
// own, in the sandbox and in its repository.
func TestAttackOtherTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const users = 4
	ids := [users]space.SpaceID{}
	for i := range ids {
		ids[i] = w.space(map[string]string{"who": fmt.Sprintf("secret of %d\n", i), "same/path": "same\n"})
	}
	// Ids of users that are prefixes of one another.
	tenants := make([]*tenant, users)
	for i := range tenants {
		tenants[i] = &tenant{world: w, user: space.UserID("u_" + strings.Repeat("1", i+1)), id: ids[i]}
	}
	var wg sync.WaitGroup
	for i, a := range tenants {
		for range 3 { // at once, also with oneself
			wg.Go(func() {
				// The commands of a tenant kill each other. A rename leaves no empty /tmp/who.
				r, err := a.try(fmt.Sprintf(`cat who; echo %[1]d >> same/path; for p in /space/../*/who /proc/*/root/space/who /proc/*/cwd/who /.satchel/*/who /tmp/who /dev/shm/who /run/satchel/*/who; do cat $p; done 2>/dev/null; echo %[1]d > /tmp/who.$$; mv /tmp/who.$$ /tmp/who; echo %[1]d > /dev/shm/who; ps aux | wc -l; for p in {2..200}; do kill -9 -$p; done 2>/dev/null; true`, i))
				if err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
				for j := range users {
					if j != i && strings.Contains(r.Stdout.Text, fmt.Sprintf("secret of %d\n", j)) {
						t.Errorf("%d sees what is %d's: %s", i, j, r.Stdout.Text)
					}
				}
			})
		}
	}
	wg.Wait()
	if n := len(w.runtime.Started()); n != users {
		t.Errorf("%d sandboxes for %d users", n, users)
	}
	for i, a := range tenants {
		if err := w.pool.StopMember(noContext(), a.user, a.id); err != nil { // the prefix of others
			t.Fatal(err)
		}
		for j, b := range tenants[i+1:] {
			if r := b.sh("cat who; cat /tmp/who"); r.Generation != 1 || r.Stdout.Text != fmt.Sprintf("secret of %d\n%d\n", i+1+j, i+1+j) {
				t.Errorf("stopping %s changed %s: generation %d, %q", a.user, b.user, r.Generation, r.Stdout.Text)
			}
		}
		if got := a.git("show", "HEAD:who"); got != fmt.Sprintf("secret of %d\n", i) {
			t.Errorf("the repository of %d has %q", i, got)
		}
		for line := range strings.Lines(a.git("show", "HEAD:same/path")) {
			if line != "same\n" && line != fmt.Sprintf("%d\n", i) {
				t.Errorf("the repository of %d has the line %q", i, line)
			}
		}
	}
	// An id that is no space's opens nothing.
	for _, id := range []space.SpaceID{ids[0][:10], "../" + ids[0], ids[0] + ".git", "s_", space.NewSpaceID(), space.SpaceID(strings.ToUpper(string(ids[0])))} {
		if r, err := w.pool.Exec(noContext(), w.request("u_x", id, "cat who")); err == nil {
			t.Errorf("the space %q: %+v", id, r)
		}
	}
}

// TestAttackRandomness: two sandboxes that started together share neither
// entropy nor ids, and have the right time.
func TestAttackRandomness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.tenant(nil), w.tenant(nil)
	look := `head -c 16 /dev/urandom | base64; cat /proc/sys/kernel/random/uuid; mktemp -u /tmp/XXXXXXXXXX; python3 -c 'import os, uuid; print(os.urandom(8).hex()); print(uuid.uuid4()); print(hash("x"))'; echo $RANDOM$RANDOM$SRANDOM; awk '/stack/ {print $1}' /proc/self/maps; date +%s`
	var outs [3][]string
	var wg sync.WaitGroup
	wg.Go(func() { outs[0] = strings.Fields(a.out(look)) })
	wg.Go(func() { outs[1] = strings.Fields(b.out(look)) })
	wg.Wait()
	if err := w.pool.StopSpace(noContext(), a.id); err != nil {
		t.Fatal(err)
	}
	outs[2] = strings.Fields(a.out(look)) // the same user's next sandbox
	var seen []string
	for _, out := range outs {
		if len(out) < 8 {
			t.Fatalf("%q", out)
		}
		for _, v := range out[:len(out)-1] {
			if slices.Contains(seen, v) {
				t.Errorf("%q came twice: %q", v, outs)
			}
			seen = append(seen, v)
		}
		var now, host int64
		fmt.Sscan(out[len(out)-1], &now)
		fmt.Sscan(hostSh(t, "date +%s"), &host)
		if d := host - now; d < -5 || d > 120 {
			t.Errorf("the clock inside is off by %d s", d)
		}
	}
}

// hostileOutput prints what steers a terminal, breaks JSON, hides text, or looks
// like the answer's own words.
const hostileOutput = `printf 'a\x1b[2J\x1b[31mred\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\\x1bP+q\x1b\\b\x00c\x08\x08\x08d\xff\xfe\xc3(\xed\xa0\x80e\r\nf\xc2\x9b31mg\x7f\xe2\x80\xa8h\xe2\x80\xaei\xe2\x81\xa6\xef\xbb\xbf"\\</script>'`

// TestAttackOutputBytes: whatever bytes a command prints, the answer is valid
// UTF-8 and JSON without one control character, in the text, in progress, in
// names and in notes.
func TestAttackOutputBytes(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(nil)
	var mu sync.Mutex
	var lines []string
	q := a.request(a.user, a.id, hostileOutput+"; echo; "+hostileOutput+" >&2; echo; sleep 0.4; mkfifo $'x\\x1b[2J\\xff'; sleep 1000 & exec -a $'\\x1b[2J' bash -c true")
	q.OnProgress = func(p sandbox.Progress) { mu.Lock(); lines = append(lines, p.Line); mu.Unlock() }
	r, err := a.pool.Exec(noContext(), q)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	texts := append(lines, r.Stdout.Text, r.Stderr.Text)
	mu.Unlock()
	for _, f := range r.Refused {
		texts = append(texts, f.Why)
	}
	texts = append(texts, r.Notes...)
	for _, s := range texts {
		if !utf8.ValidString(s) {
			t.Errorf("not UTF-8: %q", s)
		}
		for _, c := range s {
			if unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.Is(unicode.Bidi_Control, c) && c != '\u200e' && c != '\u200f' && c != '\u061c' {
				t.Errorf("%U is left in %q", c, s)
			}
		}
		if b, err := json.Marshal(s); err != nil || strings.Contains(string(b), `\u001b`) || strings.Contains(string(b), `\u0000`) {
			t.Errorf("as JSON: %s, %v", b, err)
		}
		if strings.Contains(s, "title") || strings.Contains(s, "ZXZpbA") || strings.Contains(s, "evil") {
			t.Errorf("a control sequence's text is left: %q", s)
		}
	}
	if want := "aredlink"; !strings.HasPrefix(r.Stdout.Text, want) || !strings.Contains(r.Stdout.Text, `"\</script>`) {
		t.Errorf("the text itself is gone: %q", r.Stdout.Text)
	}
	if len(refused(r)) != 1 {
		t.Errorf("refused %q", refused(r))
	}
	// Bytes that only look like text stay in files as they are.
	a.out(hostileOutput + " > raw")
	if got, want := a.git("cat-file", "blob", "HEAD:raw"), hostSh(t, hostileOutput); got != want {
		t.Errorf("the file has %q, want %q", got, want)
	}
	seenWithoutDefence(t, func(t *testing.T) {
		out := hostSh(t, hostileOutput)
		if utf8.ValidString(out) || !strings.Contains(out, "\x1b[2J") || !strings.Contains(out, "\x00") {
			t.Errorf("the output steers nothing: %q", out)
		}
	})
}
