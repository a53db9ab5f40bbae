package gitstore

import (
	"strings"
	"testing"
)

// mergeCase is one row of the table of merges. Scripts run in a clone. % is replaced by the
// short id of the remote's commit.
type mergeCase struct {
	name               string
	base, ours, theirs string
	want               string // the lines of the listing
	told               string
}

const (
	ten     = `printf '1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n' > a.md`
	tenText = "1|2|3|4|5|6|7|8|9|10"
)

var mergeCases = []mergeCase{
	{name: "different files", base: "echo b > b", ours: "echo o > o", theirs: "echo t > t",
		want: "b = b\no = o\nt = t"},
	{name: "different lines of a file", base: ten, ours: "sed -i s/^2$/two/ a.md", theirs: "sed -i s/^9$/nine/ a.md",
		want: "a.md = 1|two|3|4|5|6|7|8|nine|10"},
	{name: "the same lines of a file", base: "echo b > a.md", ours: "echo o > a.md", theirs: "echo t > a.md",
		want: "a.conflict-%.md = o\na.md = t", told: "a.md→a.conflict-%.md"},
	{name: "the same lines of a file below directories", base: "mkdir -p d/e; echo b > d/e/a.tar.gz", ours: "echo o > d/e/a.tar.gz", theirs: "echo t > d/e/a.tar.gz",
		want: "d/e/a.tar.conflict-%.gz = o\nd/e/a.tar.gz = t", told: "d/e/a.tar.gz→d/e/a.tar.conflict-%.gz"},
	{name: "identical edits", base: "echo b > a.md", ours: "echo x > a.md", theirs: "echo x > a.md; echo t > t",
		want: "a.md = x\nt = t"},
	{name: "a binary edited on both sides", base: `printf 'b\000b' > a.png`, ours: `printf 'o\000o' > a.png`, theirs: `printf 't\000t' > a.png`,
		want: "a.conflict-%.png = o\x00o\na.png = t\x00t", told: "a.png→a.conflict-%.png"},
	{name: "both added it", base: "echo b > b", ours: "echo o > a.md", theirs: "echo t > a.md",
		want: "a.conflict-%.md = o\na.md = t\nb = b", told: "a.md→a.conflict-%.md"},
	{name: "both added the same", base: "echo b > b", ours: "echo x > a.md", theirs: "echo x > a.md",
		want: "a.md = x\nb = b"},
	{name: "both added the same with different modes", base: "echo b > b", ours: "echo x > a.sh; chmod +x a.sh", theirs: "echo x > a.sh",
		want: "a.sh = x\nb = b"},
	{name: "both added empty files", base: "echo b > b", ours: ": > e; : > f", theirs: ": > e; : > g",
		want: "b = b\ne = \nf = \ng = "},
	{name: "an empty file filled on both sides", base: ": > e", ours: "echo o > e", theirs: "echo t > e",
		want: "e = t\ne.conflict-% = o", told: "e→e.conflict-%"},
	{name: "both deleted it", base: "echo b > a.md; echo b > b", ours: "rm a.md", theirs: "rm a.md",
		want: "b = b"},
	{name: "we deleted what they edited", base: "echo b > a.md; echo b > b", ours: "rm a.md", theirs: "echo t > a.md",
		want: "a.md = t\nb = b", told: "a.md→"},
	{name: "they deleted what we edited", base: "echo b > a.md; echo b > b", ours: "echo o > a.md", theirs: "rm a.md",
		want: "a.md = o\nb = b", told: "a.md→a.md"},
	{name: "they deleted what we left alone", base: "echo b > a.md; echo b > b", ours: "echo o > b", theirs: "rm a.md",
		want: "b = o"},
	{name: "we renamed what they edited", base: ten, ours: "mv a.md c.md", theirs: "sed -i s/^9$/nine/ a.md",
		want: "c.md = 1|2|3|4|5|6|7|8|nine|10"},
	{name: "they renamed what we edited", base: ten, ours: "sed -i s/^9$/nine/ a.md", theirs: "mkdir d; mv a.md d/c.md",
		want: "d/c.md = 1|2|3|4|5|6|7|8|nine|10"},
	{name: "we renamed and edited what they edited alike", base: ten, ours: "mv a.md c.md; sed -i s/^9$/ours/ c.md", theirs: "sed -i s/^9$/theirs/ a.md",
		want: "c.conflict-%.md = 1|2|3|4|5|6|7|8|ours|10\nc.md = 1|2|3|4|5|6|7|8|theirs|10", told: "c.md→c.conflict-%.md"},
	{name: "we renamed what they deleted", base: ten + "; echo b > b", ours: "mv a.md c.md", theirs: "rm a.md",
		want: "b = b\nc.md = " + tenText, told: "c.md→c.md"},
	{name: "they renamed what we deleted", base: ten + "; echo b > b", ours: "rm a.md", theirs: "mv a.md c.md",
		want: "b = b\nc.md = " + tenText, told: "c.md→"},
	{name: "both renamed it differently", base: ten, ours: "mv a.md o.md", theirs: "mv a.md t.md",
		want: "o.md = " + tenText + "\nt.md = " + tenText, told: "t.md→o.md"},
	{name: "both renamed it differently and edited it", base: ten, ours: "mv a.md o.md; sed -i s/^2$/two/ o.md", theirs: "mv a.md t.md; sed -i s/^9$/nine/ t.md",
		want: "o.md = 1|two|3|4|5|6|7|8|9|10\nt.md = 1|2|3|4|5|6|7|8|nine|10", told: "t.md→o.md"},
	{name: "both renamed it differently and edited the same line", base: ten + "; echo u > u.md", ours: "mv a.md o.md; sed -i s/^2$/ours/ o.md; echo o > u.md", theirs: "mv a.md t.md; sed -i s/^2$/theirs/ t.md; echo t > u.md",
		want: "o.md = 1|ours|3|4|5|6|7|8|9|10\nt.md = 1|theirs|3|4|5|6|7|8|9|10\nu.conflict-%.md = o\nu.md = t", told: "t.md→o.md u.md→u.conflict-%.md"},
	{name: "both renamed it alike", base: ten, ours: "mv a.md c.md", theirs: "mv a.md c.md",
		want: "c.md = " + tenText},
	{name: "two files renamed to one name", base: ten + "; seq 20 40 > b.md", ours: "mv a.md c.md", theirs: "mv b.md c.md",
		want: "c.conflict-%.md = " + tenText + "\nc.md = " + seq(20, 40), told: "c.md→c.conflict-%.md"},
	{name: "two files renamed to one name, and edited on the other side", base: ten + "; seq 20 40 > b.md",
		ours: "mv a.md c.md; sed -i s/^22$/ours/ b.md", theirs: "mv b.md c.md; sed -i s/^2$/theirs/ a.md",
		// The content that git would use for a side is a mixture of both files, so the edits
		// stay at their old paths.
		want: "a.md = " + strings.Replace(tenText, "2", "theirs", 1) + "\nb.md = " + strings.Replace(seq(20, 40), "22", "ours", 1) +
			"\nc.conflict-%.md = " + tenText + "\nc.md = " + seq(20, 40),
		told: "a.md→ b.md→b.md c.md→c.conflict-%.md"},
	{name: "renames that git mixes, beside everything else",
		base: ten + "; seq 20 40 > b.md; seq 50 70 > m.md; echo g > gone.md; echo g > gone2.md; echo f > f.md; echo k > k.md",
		ours: `mv a.md c.md; sed -i s/^22$/ours/ b.md; echo o > d; mkdir -p e/e; echo o > e/o; echo p > e/e/p
			sed -i s/^52$/ours/ m.md; echo o > gone.md; rm gone2.md; echo o > f.md; chmod +x k.md`,
		theirs: `mv b.md c.md; sed -i s/^2$/theirs/ a.md; mkdir d; echo t > d/t; echo t > e
			sed -i s/^68$/theirs/ m.md; rm gone.md; echo t > gone2.md; echo t > f.md; echo t > k.md`,
		want: "a.md = " + strings.Replace(tenText, "2", "theirs", 1) + "\nb.md = " + strings.Replace(seq(20, 40), "22", "ours", 1) +
			"\nc.conflict-%.md = " + tenText + "\nc.md = " + seq(20, 40) +
			"\nd.conflict-% = o\nd/t = t\ne = t\ne.conflict-%/e/p = p\ne.conflict-%/o = o\nf.conflict-%.md = o\nf.md = t\ngone.md = o\ngone2.md = t\nk.md (x) = t" +
			"\nm.md = " + strings.Replace(strings.Replace(seq(50, 70), "52", "ours", 1), "68", "theirs", 1),
		told: "a.md→ b.md→b.md c.md→c.conflict-%.md d→d.conflict-% e/e/p→e.conflict-%/e/p e/o→e.conflict-%/o f.md→f.conflict-%.md gone.md→gone.md gone2.md→"},
	{name: "a mode changed here, content there", base: "echo b > a.sh", ours: "chmod +x a.sh", theirs: "echo t > a.sh",
		want: "a.sh (x) = t"},
	{name: "modes changed on both sides", base: "echo b > a.sh; echo b > b.sh; chmod +x b.sh", ours: "chmod +x a.sh; chmod -x b.sh", theirs: "chmod +x a.sh; chmod -x b.sh; echo t > t",
		want: "a.sh (x) = b\nb.sh = b\nt = t"},
	{name: "modes and lines changed on both sides", base: "echo b > a.sh", ours: "chmod +x a.sh; echo o > a.sh", theirs: "echo t > a.sh",
		want: "a.conflict-%.sh (x) = o\na.sh (x) = t", told: "a.sh→a.conflict-%.sh"},
	{name: "names that differ in case alone", base: ten, ours: "mv a.md A.md", theirs: "sed -i s/^9$/nine/ a.md",
		want: "A.md = 1|2|3|4|5|6|7|8|nine|10"},
	{name: "both changed the case of a name, differently", base: "mkdir d; seq 10 > d/read.md", ours: "mv d/read.md d/READ.md", theirs: "mv d/read.md d/Read.md",
		want: "d/READ.md = " + tenText + "\nd/Read.md = " + tenText, told: "d/Read.md→d/READ.md"},
	{name: "a file here, a directory there", base: "echo b > b", ours: "echo o > d", theirs: "mkdir d; echo t > d/t",
		want: "b = b\nd.conflict-% = o\nd/t = t", told: "d→d.conflict-%"},
	{name: "a directory here, a file there", base: "echo b > b", ours: "mkdir -p d/e; echo o > d/o; echo p > d/e/p", theirs: "echo t > d",
		want: "b = b\nd = t\nd.conflict-%/e/p = p\nd.conflict-%/o = o", told: "d/e/p→d.conflict-%/e/p d/o→d.conflict-%/o"},
	{name: "a file that became a directory there, edited here", base: "echo b > d", ours: "echo o > d", theirs: "rm d; mkdir d; echo t > d/t",
		want: "d.conflict-% = o\nd/t = t", told: "d→d.conflict-%"},
	{name: "a directory that became a file there, edited here", base: "mkdir d; echo b > d/x; echo y > d/y", ours: "echo o > d/x", theirs: "rm -r d; echo t > d",
		want: "d = t\nd.conflict-%/x = o", told: "d/x→d.conflict-%/x"},
	{name: "a directory that became a file here, edited there", base: "mkdir d; echo b > d/x; echo y > d/y", ours: "rm -r d; echo o > d", theirs: "echo t > d/x",
		want: "d.conflict-% = o\nd/x = t", told: "d→d.conflict-% d/x→"},
	{name: "a link and a file", base: "echo b > b", ours: "ln -s b l", theirs: "echo t > l",
		want: "b = b\nl = t\nl.conflict-% -> b", told: "l→l.conflict-%"},
	{name: "a file and a link", base: "echo b > b; echo l > l", ours: "echo o > l", theirs: "ln -sf b l",
		want: "b = b\nl -> b\nl.conflict-% = o", told: "l→l.conflict-%"},
	{name: "a link changed on both sides", base: "ln -s b l", ours: "ln -sf o l", theirs: "ln -sf t l",
		want: "l -> t\nl.conflict-% -> o", told: "l→l.conflict-%"},
	{name: "a link that leads out", base: "echo b > b", ours: "echo o > o", theirs: "ln -s ../../etc/passwd l; ln -s /etc/passwd m",
		want: "b = b\nl -> ../../etc/passwd\nm -> /etc/passwd\no = o"},
	{name: "a submodule moved on", base: submodule("1"), ours: "echo o > o; git update-index --add o", theirs: submodule("2"),
		want: "o = o\nsub @ 2222222"},
	{name: "a submodule moved on both sides", base: submodule("1"), ours: submodule("2"), theirs: submodule("3"),
		want: "sub @ 3333333", told: "sub→"},
	{name: "a submodule and a file", base: "echo b > b", ours: "echo o > sub", theirs: submodule("3"),
		want: "b = b\nsub @ 3333333\nsub.conflict-% = o", told: "sub→sub.conflict-%"},
	{name: "a submodule that is gone there", base: submodule("1") + "; echo b > b; git update-index --add b", ours: submodule("2"), theirs: "git update-index --force-remove sub",
		want: "b = b\nsub @ 2222222", told: "sub→sub"},
	{name: "LFS pointers", base: pointer("1"), ours: pointer("2"), theirs: pointer("3"),
		want: ".gitattributes = *.bin filter=lfs diff=lfs merge=lfs -text\nx.bin = " + pointerText("3") + "\nx.conflict-%.bin = " + pointerText("2"), told: "x.bin→x.conflict-%.bin"},
	{name: "attributes with a driver and filters", base: "echo '* merge=evil filter=evil diff=evil text eol=crlf ident' > .gitattributes; " + ten,
		ours: "sed -i s/^2/two/ a.md", theirs: "sed -i s/^9/nine/ a.md",
		want: ".gitattributes = * merge=evil filter=evil diff=evil text eol=crlf ident\na.md = 1|two|3|4|5|6|7|8|nine|10"},
	{name: "attributes that would take one side", base: "echo '* merge=ours' > .gitattributes; echo b > a.md", ours: "echo o > a.md", theirs: "echo t > a.md",
		want: ".gitattributes = * merge=ours\na.conflict-%.md = o\na.md = t", told: "a.md→a.conflict-%.md"},
	{name: "attributes that would mix the lines", base: "echo '* merge=union' > .gitattributes; echo b > a.md", ours: "echo o > a.md", theirs: "echo t > a.md",
		want: ".gitattributes = * merge=union\na.conflict-%.md = o\na.md = t", told: "a.md→a.conflict-%.md"},
	{name: "names with line breaks and quotes", base: "echo b > b", ours: `echo o > "$(printf 'a\n"\047b.md')"`, theirs: `echo t > "$(printf 'a\n"\047b.md')"`,
		want: "a\n\"'b.md = t\nb = b\nunnamed.conflict-% = o", told: "a\n\"'b.md→unnamed.conflict-%"},
	{name: "a name that git gives files in its way", base: "echo b > b", ours: "echo o > d; echo m > d~HEAD", theirs: "mkdir d; echo t > d/t",
		want: "b = b\nd.conflict-% = o\nd/t = t\nd~HEAD = m", told: "d→d.conflict-%"},
	{name: "a conflict copy's own conflict", base: "echo b > b; echo b > a.conflict-0123456789.md", ours: "echo o > a.conflict-0123456789.md", theirs: "echo t > a.conflict-0123456789.md",
		want: "a.conflict-%.md = o\na.conflict-0123456789.md = t\nb = b", told: "a.conflict-0123456789.md→a.conflict-%.md"},
	{name: "a conflict copy that is there already", base: "echo b > a.md", ours: "echo o > a.md; echo o > a.conflict-0123456789.md", theirs: "echo t > a.md",
		want: "a.conflict-0123456789.md = o\na.md = t", told: "a.md→a.conflict-0123456789.md"},
	{name: "a fact that the user said here, and an AI inferred there", base: "echo b > b", ours: fact("tea", "green", "user_explicit"), theirs: fact("tea", "black", "inferred"),
		want: "b = b\nmemory/p/tea.conflict-%.md = " + factText("black", "inferred") + "\nmemory/p/tea.md = " + factText("green", "user_explicit"), told: "memory/p/tea.md→memory/p/tea.conflict-%.md"},
	{name: "a fact that an AI inferred here, and the user said there", base: "echo b > b", ours: fact("tea", "black", "inferred"), theirs: fact("tea", "green", "user_explicit"),
		want: "b = b\nmemory/p/tea.conflict-%.md = " + factText("black", "inferred") + "\nmemory/p/tea.md = " + factText("green", "user_explicit"), told: "memory/p/tea.md→memory/p/tea.conflict-%.md"},
	{name: "a fact removed and an equal one added here, and the first edited there",
		base: fact("tea", "green", "inferred"), ours: "rm memory/p/tea.md; " + fact("milk", "green", "inferred"), theirs: fact("tea", "black", "inferred"),
		want: "memory/p/milk.md = " + factText("green", "inferred") + "\nmemory/p/tea.md = " + factText("black", "inferred"), told: "memory/p/tea.md→"},
	{name: "a fact of which each side changed another line", base: fact("tea", "green", "inferred"), ours: "sed -i s/inferred/user_explicit/ memory/p/tea.md", theirs: "sed -i s/green/black/ memory/p/tea.md",
		want: "memory/p/tea.conflict-%.md = " + factText("black", "inferred") + "\nmemory/p/tea.md = " + factText("green", "user_explicit"), told: "memory/p/tea.md→memory/p/tea.conflict-%.md"},
	{name: "a fact with another value here, and another origin there", base: fact("tea", "green", "user_explicit"), ours: "sed -i s/green/black/ memory/p/tea.md", theirs: "sed -i 's/^source.*/&\\ntool: web/' memory/p/tea.md",
		want: "memory/p/tea.conflict-%.md = " + factText("black", "user_explicit") + "\nmemory/p/tea.md = " + factText("green", "user_explicit|tool: web"), told: "memory/p/tea.md→memory/p/tea.conflict-%.md"},
	{name: "a note below a fact that the other side changed", base: fact("tea", "green", "inferred"), ours: "echo note >> memory/p/tea.md", theirs: "sed -i s/green/black/ memory/p/tea.md",
		want: "memory/p/tea.md = " + factText("black", "inferred") + "|note"},
	{name: "a rename beside facts that both sides changed", base: ten, ours: "mv a.md c.md; " + fact("tea", "green", "inferred"), theirs: "sed -i s/^9$/nine/ a.md; " + fact("milk", "oat", "inferred"),
		want: "c.md = 1|2|3|4|5|6|7|8|nine|10\nmemory/p/milk.md = " + factText("oat", "inferred") + "\nmemory/p/tea.md = " + factText("green", "inferred")},
	{name: "a long name", base: "echo b > b", ours: "echo o > " + strings.Repeat("n", 251) + ".md", theirs: "echo t > " + strings.Repeat("n", 251) + ".md",
		want: "b = b\n" + strings.Repeat("n", 232) + ".conflict-%.md = o\n" + strings.Repeat("n", 251) + ".md = t",
		told: strings.Repeat("n", 251) + ".md→" + strings.Repeat("n", 232) + ".conflict-%.md"},
	{name: "everything deleted there", base: "echo b > a.md; echo b > b", ours: "echo o > a.md", theirs: "rm a.md b",
		want: "a.md = o", told: "a.md→a.md"},
	{name: "everything deleted on different sides", base: "echo b > a.md; echo c > b", ours: "rm a.md", theirs: "rm b", want: ""},
}

// fact returns a script that writes a fact, and factText the lines of its file.
func fact(key, value, source string) string {
	return "mkdir -p memory/p; printf '%s\\n' " + "'" + strings.ReplaceAll(factText(value, source), "|", "' '") + "' > memory/p/" + key + ".md"
}

func factText(value, source string) string {
	return "---|value: " + value + "|client: a|first_seen: 2026-11-20|source: " + source + "|---"
}

func seq(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		b.WriteString("|" + string(rune('0'+i/10)) + string(rune('0'+i%10)))
	}
	return b.String()[1:]
}

func submodule(digit string) string {
	return "git update-index --add --cacheinfo 160000," + strings.Repeat(digit, 40) + ",sub"
}

func pointerText(digit string) string {
	return "version https://git-lfs.github.com/spec/v1|oid sha256:" + strings.Repeat(digit, 64) + "|size 1" + digit
}

func pointer(digit string) string {
	return "echo '*.bin filter=lfs diff=lfs merge=lfs -text' > .gitattributes; printf '" + strings.ReplaceAll(pointerText(digit), "|", `\n`) + `\n' > x.bin`
}

// TestMergeTable is the specification of merges.
func TestMergeTable(t *testing.T) {
	for _, c := range mergeCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			base := o.commit("", "base", c.base)
			o.commit(string(base), "ours", c.ours)
			theirs := o.commit(string(base), "main", c.theirs)
			s := newStore(t, withTransport(t))
			id := newSpace(t, s, nil)
			if got := receive(t, s, id, o, "base"); got.How != Adopted {
				t.Fatalf("base: %+v", got)
			}
			ours := receive(t, s, id, o, "ours")
			if ours.How != FastForward {
				t.Fatalf("ours: %+v", ours)
			}
			got := receive(t, s, id, o, "main")
			sub := func(s string) string { return strings.ReplaceAll(s, "%", theirs.Short()) }
			if got.How != Merged || got.Head != got.Commit.ID || got.Commit.Parent != ours.Head {
				t.Errorf("%+v", got)
			}
			if files, want := listing(t, s.repoDir(id), "main"), sub(c.want); files != sorted(strings.Split(want, "\n")...) && files != want {
				t.Errorf("files:\n%s\nwant:\n%s", files, want)
			}
			if told := toldOf(got.Commit); told != sub(c.told) {
				t.Errorf("told %q, want %q", told, sub(c.told))
			}
			if ps := git(t, s.repoDir(id), "rev-list", "--parents", "-1", "main"); ps != string(got.Head+" "+ours.Head+" "+theirs) {
				t.Errorf("parents %s", ps)
			}
			if again := integrate(t, s, id, theirs); again.How != Ahead || again.Commit.Changed {
				t.Errorf("again: %+v", again)
			}
			fsck(t, s, id)
		})
	}
}
