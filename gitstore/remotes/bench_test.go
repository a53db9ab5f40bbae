package remotes_test

import (
	"fmt"
	"testing"

	"satchel/gitstore/remotes"
	"satchel/internal/space"
)

// BenchmarkPushed measures a change from its commit to the remote, over HTTP on this machine.
func BenchmarkPushed(b *testing.B) {
	r := newReal(b, nil)
	r.set(remotes.SetRequest{})
	n := 0
	for b.Loop() {
		n++
		r.write(map[string]string{"a.md": fmt.Sprintln(n)})
		if st := r.sync(); st.State != space.RemotePushed {
			b.Fatal(st)
		}
	}
}

// BenchmarkUsed measures what every call of a tool costs for its space's remote.
func BenchmarkUsed(b *testing.B) {
	x := newBench(b, nil)
	id := x.remote()
	if _, err := x.Sync(b.Context(), id, nil); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		x.Used(id)
		if x.Trouble(id) != "" || x.State(id) != space.RemotePushed || x.Notices(id, "u_ann") != nil {
			b.Fatal("not in step")
		}
	}
}
