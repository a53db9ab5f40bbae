package secretscan_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"satchel/gitstore/secretscan"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// token is built here, so that no scanner finds a token in this file.
func token(c string) string { return "gh" + "p_" + c + "4bQ9zX1mK7vR2tY8wP5nL3cJ6hG0dF7sA9" }

func migrated(t *testing.T, db *database.DB) *secretscan.Scanner {
	t.Helper()
	if _, err := db.Migrate(t.Context(), secretscan.Migrations()...); err != nil {
		t.Fatal(err)
	}
	s, err := secretscan.New(secretscan.Options{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestARefusalSaysWhereAndWhatToDo(t *testing.T) {
	s := migrated(t, databasetest.Open(t, databasetest.SQLite(t)))
	id := space.NewSpaceID()
	secret := token("a1")
	err := s.Screen(t.Context(), id, "notes/deploy.md", []byte("# Deploy\n\nuse "+secret+"\n"), nil)
	var refusal *secretscan.Refusal
	if fault.CodeOf(err) != fault.Forbidden || !errors.As(err, &refusal) || len(refusal.Findings) != 1 {
		t.Fatalf("%v", err)
	}
	said := fault.PublicOf(err)
	for _, want := range []string{"Line 3", "GitHub personal access token", "rule github-pat",
		"satchel space allow --user NAME " + refusal.Findings[0].Fingerprint} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %q", want, said)
		}
	}
	if strings.Contains(said, "deploy.md") || len(said) > 300 {
		t.Errorf("%q names the path, which stands beside it, or is long", said)
	}
	for _, text := range []string{said, err.Error(), refusal.Error()} {
		if strings.Contains(text, secret[4:20]) {
			t.Errorf("the secret is shown: %q", text)
		}
	}
	if err := s.Screen(t.Context(), id, "notes/deploy.md", []byte("# Deploy\n\nuse $TOKEN\n"), nil); err != nil {
		t.Error(err)
	}
}

func TestASecretInANameIsRefusedAndNotShown(t *testing.T) {
	s := migrated(t, databasetest.Open(t, databasetest.SQLite(t)))
	secret := token("a2")
	err := s.Screen(t.Context(), space.NewSpaceID(), space.Path("keys/"+secret+".txt"), []byte("text"), nil)
	if said := fault.PublicOf(err); fault.CodeOf(err) != fault.Forbidden || !strings.Contains(said, "Its name") || strings.Contains(said, secret[4:20]) {
		t.Error(err)
	}
}

func TestASecretThatIsThereAlreadyStopsNoOtherChange(t *testing.T) {
	s := migrated(t, databasetest.Open(t, databasetest.SQLite(t)))
	id := space.NewSpaceID()
	old, fresh := token("a3"), token("b3")
	had := func(text string) func() ([]byte, error) {
		return func() ([]byte, error) { return []byte(text), nil }
	}
	if err := s.Screen(t.Context(), id, "a.md", []byte("a line more\nkey "+old), had("key "+old)); err != nil {
		t.Error(err)
	}
	err := s.Screen(t.Context(), id, "a.md", []byte("key "+old+"\nkey "+fresh), had("key "+old))
	var refusal *secretscan.Refusal
	if !errors.As(err, &refusal) || len(refusal.Findings) != 1 || refusal.Findings[0].Line != 2 {
		t.Errorf("%v", err)
	}
	broken := errors.New("the disk is broken")
	if err := s.Screen(t.Context(), id, "a.md", []byte(old), func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) || fault.CodeOf(err) != fault.Internal {
		t.Errorf("%v", err)
	}
}

func TestSeveralSecretsAreToldOneByOne(t *testing.T) {
	s := migrated(t, databasetest.Open(t, databasetest.SQLite(t)))
	var text strings.Builder
	for _, c := range []string{"a7", "b7", "c7", "d7", "e7"} {
		text.WriteString(token(c) + "\n" + token(c) + "\n")
	}
	err := s.Screen(t.Context(), space.NewSpaceID(), "a.md", []byte(text.String()), nil)
	var refusal *secretscan.Refusal
	if !errors.As(err, &refusal) || len(refusal.Findings) != 10 {
		t.Fatalf("%v", err)
	}
	said := fault.PublicOf(err)
	for _, want := range []string{"Line 1 ", "line 2 ", "line 3 ", "and 7 more", "one by one",
		"satchel space allow --user NAME " + refusal.Findings[0].Fingerprint + " (likewise " + refusal.Findings[2].Fingerprint + ", "} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %q", want, said)
		}
	}
	if len(said) > secretscan.MaxSentence {
		t.Errorf("%d bytes: %s", len(said), said)
	}
}

func TestWhatWasAllowedSaysWhereItWasRefused(t *testing.T) {
	s := migrated(t, databasetest.Open(t, databasetest.SQLite(t)))
	id := space.NewSpaceID()
	var refusal *secretscan.Refusal
	if err := s.Screen(t.Context(), id, "notes/a.md", []byte(token("a8")), nil); !errors.As(err, &refusal) {
		t.Fatal(err)
	}
	if err := s.Allow(t.Context(), space.SecretAllowance{Space: id, Fingerprint: refusal.Findings[0].Fingerprint, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	list, err := s.List(t.Context(), id)
	if err != nil || len(list) != 1 || list[0].Rule != "github-pat" || list[0].Path != "notes/a.md" || list[0].At.IsZero() {
		t.Errorf("%+v %v", list, err)
	}
}

func TestAllowances(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		s := migrated(t, db)
		ctx := t.Context()
		mine, other := space.NewSpaceID(), space.NewSpaceID()
		content := []byte(token("a4"))
		screen := func(id space.SpaceID) error { return s.Screen(ctx, id, "a.md", content, nil) }
		fingerprint := s.Scan("a.md", content)[0].Fingerprint
		a := space.SecretAllowance{Space: mine, Fingerprint: fingerprint, Rule: "github-pat", Path: "a.md", By: "u_ada", At: time.UnixMilli(1_000_000).UTC()}
		for range 2 { // the second call has the same result
			if err := s.Allow(ctx, a); err != nil {
				t.Fatal(err)
			}
		}
		if err := screen(mine); err != nil {
			t.Errorf("an allowed secret: %v", err)
		}
		if err := screen(other); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("an allowance of another space: %v", err)
		}
		list, err := s.List(ctx, mine)
		if err != nil || len(list) != 1 || list[0] != a {
			t.Errorf("%+v %v", list, err)
		}
		if list, err := s.List(ctx, other); err != nil || len(list) != 0 {
			t.Errorf("%+v %v", list, err)
		}
		if err := s.Disallow(ctx, other, fingerprint); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%v", err)
		}
		if err := s.Disallow(ctx, mine, fingerprint); err != nil {
			t.Error(err)
		}
		if err := screen(mine); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("after the allowance was taken back: %v", err)
		}
		for _, bad := range []string{"", "x", strings.ToUpper(fingerprint), fingerprint + "0", "%" + fingerprint[1:]} {
			if err := s.Allow(ctx, space.SecretAllowance{Space: mine, Fingerprint: bad}); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q was allowed: %v", bad, err)
			}
		}
	})
}

func TestADatabaseThatDoesNotAnswerKeepsTheFileWaiting(t *testing.T) {
	db := databasetest.Open(t, databasetest.SQLite(t)) // the table is missing
	s, err := secretscan.New(secretscan.Options{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Screen(t.Context(), space.NewSpaceID(), "a.md", []byte(token("a5")), nil); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Screen(ctx, space.NewSpaceID(), "a.md", []byte(token("a5")), nil); err == nil {
		t.Error("screened after its context had ended")
	}
}

func TestAPurge(t *testing.T) {
	s := migrated(t, databasetest.Open(t, databasetest.SQLite(t)))
	id := space.NewSpaceID()
	allowed, known := token("a6"), token("b6")
	const only = "Zq8-vTr5_mXw2LpKd9" // the remote's rules find this text, and ours do not
	if err := s.Allow(t.Context(), space.SecretAllowance{Space: id, Fingerprint: s.Scan("", []byte(allowed))[0].Fingerprint}); err != nil {
		t.Fatal(err)
	}
	u, err := s.Purger(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	told := []byte("# Notes\nexport ACME_TOKEN=" + only + " # for the build\nend\n")
	if n := u.Learn(told, 2); n != 1 {
		t.Errorf("learnt %d secrets", n)
	}
	for _, line := range []int{0, -1, 9} {
		if n := u.Learn(told, line); n != 0 {
			t.Errorf("line %d: learnt %d secrets", line, n)
		}
	}
	// Attack: a remote names lines of prose, so that they are removed from every file. A line
	// that is only a sign or a word must not be removed either.
	if n := u.LearnNamed([]byte("Dear diary, it was a long day.\n"), 1); n != 0 {
		t.Errorf("a line of prose is taken for a secret on a remote's word: %d", n)
	}
	if n := u.LearnNamed(told, 2); n != 1 {
		t.Errorf("a secret that a remote names is not learnt: %d", n)
	}
	if n := u.Learn([]byte("```go\n}\n"), 1) + u.Learn([]byte("```go\n}\n"), 2); n != 0 {
		t.Errorf("learnt %d words", n)
	}
	if n := u.Learn([]byte("see https://docs.acme4.test/v1/keys2\n"), 1); n != 1 { // the line, not each URL
		t.Errorf("learnt %d secrets", n)
	}
	for in, want := range map[string]string{
		"more on https://docs.acme4.test/v1/keys2": "more on https://docs.acme4.test/v1/keys2",
		string(told):                        "# Notes\nexport ACME_TOKEN=" + secretscan.Redacted + " # for the build\nend\n",
		"later: " + only + "\nand " + known: "later: " + secretscan.Redacted + "\nand " + secretscan.Redacted,
		"kept: " + allowed:                  "kept: " + allowed,
		"nothing here":                      "nothing here",
	} {
		out, keep := u.Rewrite("a.md", []byte(in))
		if string(out) != want || !keep {
			t.Errorf("%q became %q, want %q", in, out, want)
		}
	}
	same := []byte("nothing here")
	if out, _ := u.Rewrite("b.md", same); &out[0] != &same[0] {
		t.Error("what has no secret is another slice")
	}
	if n := u.Removed()["a.md"]; n != 3 {
		t.Errorf("%d secrets were removed", n)
	}
	// A secret on a line that a person names is removed even if it is allowed.
	if n := u.Learn([]byte(allowed), 1); n != 1 {
		t.Errorf("learnt %d secrets", n)
	}
	if out, _ := u.Rewrite("a.md", []byte("kept: "+allowed)); string(out) != "kept: "+secretscan.Redacted {
		t.Errorf("%q", out)
	}
	if u.Learn([]byte("part: Zq8-vTr5_mXw2\n"), 1) != 1 || u.Learn([]byte("all: Zq8-vTr5_mXw2LpKd9aaaa1\n"), 1) != 1 {
		t.Error("not learnt")
	}
	if out, _ := u.Rewrite("a.md", []byte("it is Zq8-vTr5_mXw2LpKd9aaaa1")); string(out) != "it is "+secretscan.Redacted {
		t.Errorf("a part of a secret is left: %q", out)
	}
	many := strings.Repeat(known+"\n", secretscan.DefaultMaxFindings+500)
	if out, _ := u.Rewrite("many.md", []byte(many)); strings.Contains(string(out), known) {
		t.Error("of many secrets some are left")
	}
}
