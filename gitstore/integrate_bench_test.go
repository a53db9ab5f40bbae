package gitstore

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"satchel/gitstore/transport"
	"satchel/internal/space"
)

const benchFiles = 10_000

// bigOrigin returns an origin with many files.
func bigOrigin(b testing.TB) *origin {
	b.Helper()
	o := newOrigin(b)
	o.commit("", "main", fmt.Sprintf(`i=0; while [ $i -lt %d ]; do d=d$((i%%100)); [ -d $d ] || mkdir $d
		printf '# Page %%s\n\nSome words about %%s, and more of them: %%s.\n' $i $((i*7919)) $((i*104729)) > $d/page-$i.md; i=$((i+1)); done`, benchFiles))
	git(b, o.dir, "repack", "-adq")
	return o
}

func BenchmarkFetchAndFastForward10k(b *testing.B) {
	o := bigOrigin(b)
	s := newStore(b, withTransport(b))
	id := newSpace(b, s, nil)
	receive(b, s, id, o, "main")
	if _, err := s.Stats(b.Context(), id); err != nil { // counts the files
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		o.commit("", "main", fmt.Sprintf("echo %d > d7/page-7.md", i))
		b.StartTimer()
		f, err := s.Fetch(b.Context(), id, o.endpoint(), "main", nil)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		tip := f.Tip
		b.StartTimer()
		if got := integrate(b, s, id, tip); got.How != FastForward {
			b.Fatal(got.How)
		}
	}
}

func BenchmarkIntegrate10k(b *testing.B) {
	for _, how := range []How{FastForward, Merged} {
		b.Run(string(how), func(b *testing.B) {
			o := bigOrigin(b)
			s := newStore(b, withTransport(b))
			id := newSpace(b, s, nil)
			receive(b, s, id, o, "main")
			if _, err := s.Stats(b.Context(), id); err != nil { // counts the files
				b.Fatal(err)
			}
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				tip := o.commit("", "main", fmt.Sprintf("echo %d > d7/page-7.md", i))
				if _, err := s.Fetch(b.Context(), id, o.endpoint(), "main", nil); err != nil {
					b.Fatal(err)
				}
				if how == Merged {
					commit(b, s, id, writes(map[string]string{fmt.Sprintf("own/%d.md", i): "x"}))
				}
				b.StartTimer()
				if got := integrate(b, s, id, tip); got.How != how {
					b.Fatal(got.How)
				}
			}
		})
	}
}

// BenchmarkFirstClone10k compares a new space's first fetch and integration with a git clone of
// the same directory.
func BenchmarkFirstClone10k(b *testing.B) {
	o := bigOrigin(b)
	b.Run("satchel", func(b *testing.B) {
		s := newStore(b, withTransport(b))
		for b.Loop() {
			b.StopTimer()
			id := newSpace(b, s, map[string]string{"start.md": "x"})
			b.StartTimer()
			f, err := s.Fetch(b.Context(), id, transport.Endpoint{URL: o.dir, Trusted: true}, "main", nil)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := s.Integrate(b.Context(), id, f.Tip, space.Meta{Author: ada}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("git", func(b *testing.B) {
		dir := b.TempDir()
		for i := 0; b.Loop(); i++ {
			git(b, dir, "clone", "-q", "--no-local", o.dir, filepath.Join(dir, fmt.Sprint(i)))
			b.StopTimer()
			os.RemoveAll(filepath.Join(dir, fmt.Sprint(i)))
			b.StartTimer()
		}
	})
}
