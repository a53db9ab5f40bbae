package gitstore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/gitstore"
	"satchel/internal/fault"
)

func TestMergeText(t *testing.T) {
	// Attack: the store is inside a repository with other settings.
	outer := t.TempDir()
	for name, text := range map[string]string{
		"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n[merge]\n\tconflictStyle = diff3\n",
		"objects/x": "", "refs/x": "",
	} {
		p := filepath.Join(outer, ".git", name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(outer, "store")
	s, err := gitstore.Open(gitstore.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tt := range []struct{ name, base, ours, theirs, want string }{
		{"different places", "a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nD\n", "A\nb\nc\nD\n"},
		{"one place", "a\nb\n", "a\nx\n", "a\ny\n", "a\n<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n"},
		{"equal lines", "t\nm\nm\nm\n", "t\nm\nm\n", "n\nt\nm\nm\n", "n\nt\nm\nm\n"},
		{"more conflicts than an exit status counts", strings.Repeat("a\n1\n2\n3\n4\n", 300), strings.Repeat("b\n1\n2\n3\n4\n", 300), strings.Repeat("c\n1\n2\n3\n4\n", 300),
			strings.Repeat("<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n1\n2\n3\n4\n", 300)},
		{"nothing", "", "", "", ""},
	} {
		got, err := s.MergeText(t.Context(), []byte(tt.base), []byte(tt.ours), []byte(tt.theirs))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %v, %q", tt.name, err, got)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.MergeText(ended, []byte("a\n"), []byte("b\n"), []byte("c\n")); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := s.MergeText(t.Context(), nil, nil, make([]byte, 17<<20)); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("a text that is too large: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".cache", "merge-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v, left %v", err, left)
	}
}

func TestMergeTextWithoutGit(t *testing.T) {
	s, err := gitstore.Open(gitstore.Options{Dir: t.TempDir(), Git: "git-that-is-not-installed"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.MergeText(t.Context(), []byte("a\n"), []byte("b\n"), []byte("c\n")); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
}
