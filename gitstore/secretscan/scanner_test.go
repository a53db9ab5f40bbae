package secretscan

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

func TestLinesAndColumns(t *testing.T) {
	s := newScanner(t)
	r := rand.New(rand.NewPCG(7, 8))
	a, b := join("gh", "p_", from(r, base62, 36)), join("glp", "at-", from(r, urlSafe, 20))
	content := []byte("one\n  " + a + " " + b + "\r\n\r\n" + a)
	got := s.Scan("x", content)
	check(t, content, got)
	want := []struct{ rule, at string }{{"github-pat", "2:3"}, {"gitlab-pat", "2:44"}, {"github-pat", "4:1"}}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		if at := fmt.Sprintf("%d:%d", got[i].Line, got[i].Column); got[i].Rule != w.rule || at != w.at {
			t.Errorf("%s at %s, want %s at %s", got[i].Rule, at, w.rule, w.at)
		}
	}
	if got[0].Fingerprint != got[2].Fingerprint || got[0].Fingerprint == got[1].Fingerprint {
		t.Error("a fingerprint is the secret's, wherever it is")
	}
}

func TestAFingerprintForgetsHowAKeyIsWrapped(t *testing.T) {
	s := newScanner(t)
	key := pem(rand.New(rand.NewPCG(9, 9)), "RSA ", 25)
	prints := map[string]bool{}
	for _, text := range []string{key, strings.ReplaceAll(key, "\n", "\r\n"), strings.ReplaceAll(key, "\n", "\n      ")} {
		for _, f := range s.Scan("x", []byte(text)) {
			prints[f.Fingerprint] = true
		}
	}
	if len(prints) != 1 {
		t.Errorf("%v", prints)
	}
}

func TestAWholePrivateKeyIsFound(t *testing.T) {
	s := newScanner(t)
	r := rand.New(rand.NewPCG(10, 9))
	key := pem(r, "RSA ", 50)
	for name, c := range map[string]struct{ content, secret string }{
		"between text":          {"a\n" + key + "\nb\n", key},
		"in JSON":               {`{"k":"` + strings.ReplaceAll(key, "\n", `\n`) + `\n","x":1}`, strings.ReplaceAll(key, "\n", `\n`)},
		"twice":                 {key + "\n" + key, key},
		"without its last line": {key[:len(key)-30] + "\n\nThat is all.", key[:len(key)-30]},
		"with headers":          {strings.Replace(key, "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n", 1), ""},
	} {
		content := []byte(c.content)
		found := s.Scan("x", content)
		check(t, content, found)
		if len(found) == 0 || c.secret != "" && string(content[found[0].Start:found[0].End]) != c.secret {
			t.Errorf("%s: %v %q", name, found, secrets(content, found))
		}
		if rest := string(Redact(content, found)); strings.Contains(rest, key[100:140]) || strings.Contains(rest, key[len(key)-80:len(key)-40]) {
			t.Errorf("%s: some of it is left: %q", name, rest)
		}
	}
}

func TestAKeyLongerThanWhatIsReadIsFoundToItsEnd(t *testing.T) {
	s := newScanner(t)
	long := join("EA", "AC", from(rand.New(rand.NewPCG(21, 9)), base62, 5000))
	content := []byte("a " + long + " b")
	if found := s.Scan("x", content); len(found) != 1 || string(content[found[0].Start:found[0].End]) != long {
		t.Errorf("%v", found)
	}
}

func TestTextInUTF16(t *testing.T) {
	s := newScanner(t)
	token := join("gh", "p_", from(rand.New(rand.NewPCG(11, 9)), base62, 36))
	units := utf16.Encode([]rune("日本 notes\nkey: " + token + " fin\n" + strings.Repeat("more text ", 60)))
	for name, order := range map[string]binary.ByteOrder{"little": binary.LittleEndian, "big": binary.BigEndian} {
		for _, mark := range []bool{true, false} {
			var b bytes.Buffer
			all := units
			if mark {
				all = append([]uint16{0xfeff}, units...)
			} else {
				all = units[3:] // only the zeros show the byte order
			}
			if err := binary.Write(&b, order, all); err != nil {
				t.Fatal(err)
			}
			content := b.Bytes()
			found := s.Scan("x", content)
			if len(found) != 1 || found[0].Line != 2 || found[0].Column != 11 {
				t.Fatalf("%s endian, mark %v: %+v", name, mark, found)
			}
			var got []uint16
			for i := found[0].Start; i < found[0].End; i += 2 {
				got = append(got, order.Uint16(content[i:]))
			}
			if string(utf16.Decode(got)) != token {
				t.Errorf("%s endian: %q", name, string(utf16.Decode(got)))
			}
			rest := make([]uint16, 0, len(units))
			for out := Redact(content, found); len(out) > 1; out = out[2:] {
				rest = append(rest, order.Uint16(out))
			}
			if text := string(utf16.Decode(rest)); !strings.Contains(text, "key: "+Redacted+" fin\n") {
				t.Errorf("%s endian: %q", name, text)
			}
		}
	}
}

func TestKeysInBase64AreFound(t *testing.T) {
	s := newScanner(t)
	r := rand.New(rand.NewPCG(19, 9))
	for _, k := range realKeys(r) {
		plain := s.Scan("x", []byte(k.text))
		for _, before := range []string{"", "user:", "x-access-token:"} {
			code := base64.StdEncoding.EncodeToString([]byte(before + k.text))
			content := []byte("kind: Secret\ndata:\n  token: " + code + "\n  other: bm90IGEga2V5\n")
			found := s.Scan("x", content)
			check(t, content, found)
			if len(found) != 1 || found[0].Rule != k.rule || found[0].Line != 3 || string(content[found[0].Start:found[0].End]) != code {
				// The base64 itself may also look like a key.
				t.Errorf("%s: %+v %q", k.rule, found, secrets(content, found))
				continue
			}
			if found[0].Fingerprint != plain[0].Fingerprint || !strings.Contains(found[0].Description, "in base64") {
				t.Errorf("%+v, plain %+v", found[0], plain[0])
			}
		}
	}
}

func TestSecretsInBinaryFilesAreFound(t *testing.T) {
	s := newScanner(t)
	r := rand.New(rand.NewPCG(12, 9))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	token := join("gh", "p_", from(r, base62, 36))
	content := slices.Concat(noise, []byte{0}, []byte(token), []byte{0}, noise)
	if found := s.Scan("notes.sqlite", content); len(found) != 1 || string(content[found[0].Start:found[0].End]) != token {
		t.Errorf("%v", found)
	}
}

// TestHostileContent checks that the time only grows with the content. Each content is 1 MB
// that could make a matcher slow. The limit of the test would end a search that is not linear.
func TestHostileContent(t *testing.T) {
	s := newScanner(t)
	const size = 1 << 20
	r := rand.New(rand.NewPCG(13, 9))
	token := join("gh", "p_", from(r, base62, 36))
	fill := func(unit string) []byte { return []byte(strings.Repeat(unit, size/len(unit)+1)[:size]) }
	for name, content := range map[string][]byte{
		"one line of a":                     fill("a"),
		"beginnings of a key without limit": append(fill("EAAC"), '!'),
		"the same with ends between":        fill(strings.Repeat("EAAC", 250) + "!"),
		"beginnings of a key with a limit":  fill("glpat-"),
		"beginnings of private keys":        fill(join("-----BEGIN ", "PRIVATE KEY-----")),
		"beginnings of long private keys":   fill(join("-----BEGIN ", "PRIVATE KEY-----\n", from(r, base64s, 40), "\n")),
		"long beginnings of a line":         fill("-----BEGIN AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
		"two letters":                       fill("MT"),
		"two letters and a space":           fill("MTx "),
		"dots":                              fill("SG."),
		"keys in base64":                    fill(base64.StdEncoding.EncodeToString([]byte(token+"\n")) + " "),
		"beginnings in base64":              fill(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("glpat-", 1000)))),
		"short texts of base64":             fill("Z2xwYXQtZ2xwYXQtZ2xwYXQtZ2xwYXQtZ2xwYXQtZ2xwYXQtZ2xwYXQtZ2xwYXQt "),
		"base64":                            fill("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"),
		"beginnings with labels":            fill(join("-----BEGIN ", "PRIVATE KEY-----a: ")),
		"an access key's name":              fill("secret_access_key "),
		"keys":                              fill(token + " "),
		"lines":                             fill("\n"),
		"zeros":                             fill("\x00"),
		"halves of UTF-16":                  fill("g\x00h\x00p\x00_\x00"),
		"broken UTF-8":                      fill("\xc3\x28\xff\xfeghp_"),
		"AKIA":                              fill("AKIA"),
		"beginnings of web tokens":          fill(join("ey", "JhbGciOiJIUzI1NiJ9.")),
		"long claims of web tokens":         fill(join("ey", "JhbGciOiJIUzI1NiJ9.eyJ", strings.Repeat("a", 7<<10), "-")),
		"a header in a header":              fill("-" + "eyJhIjoi"),
	} {
		found := s.Scan("x", content)
		check(t, content, found)
		if len(found) > DefaultMaxFindings+1 {
			t.Errorf("%s: %d findings", name, len(found))
		}
		t.Logf("%s: %d findings", name, len(found))
	}
}

// TestWhatIsNotSearchedIsTold checks that a file cannot hide a key behind so much text that the
// key is never searched for.
func TestWhatIsNotSearchedIsTold(t *testing.T) {
	s := newScanner(t)
	r := rand.New(rand.NewPCG(14, 9))
	token := join("gh", "p_", from(r, base62, 36))
	example := join("gh", "p_", from(r, base62, 36))
	for _, unit := range []string{example + "\n", base64.StdEncoding.EncodeToString([]byte(example)) + "\n", strings.Repeat("EAAC", 250) + "!", join("-----BEGIN ", "PRIVATE KEY-----\n"), "glpat-", "MT"} {
		content := []byte(strings.Repeat(unit, 4<<20/len(unit)) + " " + token + " ")
		found := s.Scan("x", content)
		check(t, content, found)
		if !slices.ContainsFunc(found, func(f Finding) bool {
			return f.Rule == RuleUnread || string(content[f.Start:f.End]) == token
		}) {
			t.Errorf("%.20q hid a key", unit)
		}
	}
}

func TestDocumentationHasNoFindings(t *testing.T) {
	s := newScanner(t)
	files := 0
	for _, archive := range []string{"nuxt.tar.gz", "astro.tar.gz"} {
		eachInArchive(t, testenv.LargeData(t, "docs", archive), func(name string, content []byte) {
			files++
			if found := s.Scan("x", content); len(found) > 0 {
				t.Errorf("%s: %v %q", name, found, secrets(content, found))
			}
		})
	}
	t.Logf("%d files", files)
}

func TestThisRepositoryHasNoFindings(t *testing.T) {
	s := newScanner(t)
	files, err := filepath.Glob("*")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			continue // a directory
		}
		if found := s.Scan("x", content); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestRulesCanBeLeftOut(t *testing.T) {
	content := []byte(join("gh", "p_", from(rand.New(rand.NewPCG(15, 9)), base62, 36)))
	s, err := New(Options{Without: []string{"github-pat"}})
	if err != nil || len(s.Scan("x", content)) > 0 {
		t.Error(err)
	}
	if _, err := New(Options{Without: []string{"no-such-rule"}}); err == nil {
		t.Error("a rule that does not exist was left out")
	}
}

func FuzzScan(f *testing.F) {
	s, err := New(Options{MaxFindings: 50})
	if err != nil {
		f.Fatal(err)
	}
	r := rand.New(rand.NewPCG(16, 9))
	for _, k := range realKeys(r) {
		f.Add([]byte(k.text), 3)
		f.Add([]byte("\xff\xfe"+strings.Join(strings.Split(k.text, ""), "\x00")+"\x00"), 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		// The input may contain a key in any place.
		found := s.Scan("x", data)
		check(t, data, found)
		out := Redact(data, found)
		if len(found) == 0 && !bytes.Equal(out, data) {
			t.Fatal("changed without a finding")
		}
		for _, g := range found {
			if g.Rule == RuleUnread {
				return
			}
		}
		if again := s.Scan("x", out); len(again) > len(found) {
			t.Fatalf("redacting %q made findings: %v", data, again)
		}
		u := &Purger{s: s, counts: map[space.Path]int{}}
		if n := u.Learn(data, at); n > 0 {
			out, keep := u.Rewrite("x", data)
			if !keep {
				t.Fatal("a purge keeps files")
			}
			for _, secret := range u.learnt {
				if bytes.Contains(out, secret) && !bytes.Contains([]byte(Redacted), secret) {
					t.Fatalf("%q is left in %q", secret, out)
				}
			}
		}
	})
}

// FuzzAKeyIsFoundAnywhere checks that the text around a key does not hide it.
func FuzzAKeyIsFoundAnywhere(f *testing.F) {
	s, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	keys := realKeys(rand.New(rand.NewPCG(22, 9)))
	for _, before := range []string{"", "\xff\xfe", "\xfe\xff\x00", "a\x00b\x00c\x00", "glpat-", "-----BEGIN x", strings.Repeat("A", 80) + "\n", "data: "} {
		f.Add([]byte(before), []byte("\n"), uint8(len(before)))
	}
	f.Fuzz(func(t *testing.T, before, after []byte, which uint8) {
		k := keys[int(which)%len(keys)]
		content := slices.Concat(before, []byte("\n"), []byte(k.text), []byte("\n"), after)
		start, end := len(before)+1, len(before)+1+len(k.text)
		found := s.Scan("x", content)
		check(t, content, found)
		if !slices.ContainsFunc(found, func(g Finding) bool { return g.Start < end && g.End > start || g.Rule == RuleUnread }) {
			t.Fatalf("%s is hidden in %q", k.rule, content)
		}
	})
}

func TestManyScanAtOnce(t *testing.T) {
	s := newScanner(t) // the searches below are its first
	r := rand.New(rand.NewPCG(20, 9))
	keys := realKeys(r)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, k := range keys {
				if len(s.Scan("x", []byte(k.text))) == 0 {
					t.Errorf("no %s", k.rule)
				}
			}
		})
	}
	wg.Wait()
}
