package app

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/cmd/satchel/internal/admin"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// withPages is a data directory on which no server works, with an indexed space
// of many pages, one of which has the word lighthouse.
func withPages(t *testing.T) (c *Core, id space.SpaceID) {
	t.Helper()
	c, err := OpenCore(t.Context(), settings(t), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, _, err := c.Admin.FirstUser(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := range 200 {
		var text strings.Builder
		fmt.Fprintf(&text, "# Page %d\n\n", i)
		for j := range 300 {
			fmt.Fprintf(&text, "word%dof%d ", j, i)
		}
		if i == 77 {
			text.WriteString("lighthouse")
		}
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("pages/%d.md", i), Mode: 0o644, Size: int64(text.Len())})
		if _, werr := w.Write([]byte(text.String())); err != nil || werr != nil {
			t.Fatal(err, werr)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Admin.Import(t.Context(), admin.ImportRequest{User: "ann", Kind: admin.KindTar}, &b, func(string) {}); err != nil {
		t.Fatal(err)
	}
	done, err := c.Admin.Reindex(t.Context(), admin.ReindexRequest{User: "ann"}, func(string) {})
	if err != nil || len(done) != 1 || done[0].Documents < 200 {
		t.Fatal(done, err)
	}
	return c, done[0].Space
}

// An index that rotted is made anew by the command that meets the damage: what
// it answers, and what is measured with it, is of the whole space.
func TestADamagedIndexIsRepairedBeforeTheAnswer(t *testing.T) {
	c, id := withPages(t)
	rot := func() {
		files, err := filepath.Glob(filepath.Join(indexDir(c.Config), string(id)+".*.db"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		copy(data[50_000:], bytes.Repeat([]byte{0xa5}, len(data)-50_000))
		if err := os.WriteFile(files[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rot()
	answer, err := c.Admin.Search(t.Context(), admin.SearchRequest{Arguments: admin.SearchArguments{Query: "lighthouse"}}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Results []struct{ Path string }
		Notes   []string
	}
	if err := json.Unmarshal(answer, &found); err != nil || len(found.Results) != 1 || found.Results[0].Path != "pages/77.md" || len(found.Notes) > 0 {
		t.Errorf("%s, %v", answer, err)
	}
	rot()
	for _, depth := range []int{10, 100} {
		ranked, err := c.Admin.Rank(t.Context(), admin.RankRequest{Queries: []string{"lighthouse"}, Depth: depth}, func(string) {})
		if err != nil || len(ranked.Rankings[0].Paths) != 1 {
			t.Errorf("%v, %v", ranked, err)
		}
	}
}

// A search whose index is at head does not wait for it to be made anew.
func TestASearchGoesOnWhileTheIndexIsMadeAnew(t *testing.T) {
	c, id := withPages(t)
	x, err := openIndex(c.Config, c.Log)
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.newFinder(x, true)
	if err != nil {
		t.Fatal(err)
	}
	begun, goOn, ended := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := f.Rebuild(context.Background(), id, func(string) {
			select {
			case begun <- struct{}{}:
			default:
			}
			<-goOn
		})
		ended <- err
	}()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatal("the index was made anew already", err)
	}
	u, err := c.Accounts.FindUser(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := f.Search(testenv.Context(t), u, store.Membership{Space: store.Space{ID: id, Name: "ann"}}, json.RawMessage(`{"query":"lighthouse"}`), func(string) {})
	if err != nil || !bytes.Contains(answer, []byte("pages/77.md")) {
		t.Errorf("%s, %v", answer, err)
	}
	select {
	case err := <-ended:
		t.Error("the search waited", err)
	default:
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
