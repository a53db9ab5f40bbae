package transport_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
)

// Attack: a remote answers List correctly, and sends git little data that unpacks to more than
// the machine's memory.
func TestABombInTheAdvertisementIsOverTheLimit(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{Git: gitcmd.Runner{Memory: 128 << 20}})
	dir := repo(t)
	push := r.pushing(dir)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	block := bytes.Repeat([]byte("0"), 1<<20)
	for range 512 {
		if _, err := z.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r.Inject(func(q remotetest.Request) remotetest.Fault {
		service := q.Query.Get("service")
		if service == "" {
			return remotetest.Fault{}
		}
		f := remotetest.Status(http.StatusOK, bomb.String())
		f.Answer.Header = http.Header{"Content-Type": {"application/x-" + service + "-advertisement"}, "Content-Encoding": {"gzip"}}
		return f
	})
	for what, err := range map[string]error{
		"fetch": r.c.Fetch(t.Context(), r.endpoint(), repo(t), "main", "refs/heads/x", 0, nil),
		"push":  push(),
	} {
		e := fails(t, err, transport.OverLimit)
		if e.Temporary() || !strings.Contains(e.Public(), "memory") || !strings.Contains(e.Remedy(), "memory") {
			t.Errorf("%s is told as %q %q", what, e.Public(), e.Remedy())
		}
	}
}

// Ordinary repositories need far less than the default: many files, and a file of many
// megabytes that cannot be compressed.
func TestUsualRepositoriesNeedLittleMemory(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{Git: gitcmd.Runner{Memory: 256 << 20}})
	files := map[string]string{"large.bin": noise(20<<20, 1), "text.txt": strings.Repeat("a line of some text\n", 1<<20)}
	for i := range 1000 {
		files[filepath.Join("d", string(rune('a'+i%26)), noiseName(i))] = noise(500, byte(i))
	}
	r.Push("notes", "main", files)
	dir := repo(t)
	push := r.pushing(dir)
	if err := push(); err != nil {
		t.Error(err)
	}
}

func noiseName(i int) string {
	return strings.Repeat("n", i%50+1) + string(rune('a'+i/50%26)) + string(rune('a'+i/1300))
}
