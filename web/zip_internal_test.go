package web

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/tools"
)

func TestAttackZipThatLeavesItsDirectory(t *testing.T) {
	texts := map[space.BlobID]string{"text": "x", "in": "a.md", "out": "../../etc/passwd", "abs": "/etc/passwd"}
	files := []tools.Entry{
		{Path: "a.md", Blob: "text"}, {Path: "sub/in", Mode: space.Symlink, Blob: "in"},
		{Path: `..\..\evil.txt`, Blob: "text"}, {Path: `x\..\y`, Blob: "text"}, {Path: "../up", Blob: "text"},
		{Path: "sub/out", Mode: space.Symlink, Blob: "out"}, {Path: "abs", Mode: space.Symlink, Blob: "abs"},
	}
	var b bytes.Buffer
	err := writeZip(t.Context(), &b, "notes", "c", time.Unix(0, 0), files, func(id space.BlobID) ([]byte, error) { return []byte(texts[id]), nil })
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "notes/a.md notes/sub/in" {
		t.Errorf("the archive has %s", got)
	}
}
