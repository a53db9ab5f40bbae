package server

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/gitstore/sources"
	"satchel/internal/admin"
	"satchel/internal/service"
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
	if _, _, err := c.Service.FirstUser(t.Context(), "ann"); err != nil {
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
	if _, err := c.Service.ImportSpace(t.Context(), service.Operator(), service.ImportSpaceInput{Space: service.SpaceRef{User: "ann"}, Kind: service.ImportTar, Stream: &b}); err != nil {
		t.Fatal(err)
	}
	done, err := c.Service.Reindex(t.Context(), service.Operator(), service.ReindexInput{Space: service.SpaceRef{User: "ann"}})
	if err != nil || len(done) != 1 || done[0].Documents < 200 {
		t.Fatal(done, err)
	}
	return c, done[0].Space
}

// An index that rotted is made again by the command that meets the damage: what
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
	answer, err := c.Service.Search(t.Context(), service.Operator(), service.SearchInput{Query: "lighthouse", Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Results) != 1 || answer.Results[0].Path != "pages/77.md" || len(answer.Notes) > 0 || len(answer.Results[0].Why.Terms) != 1 {
		t.Errorf("%+v", answer)
	}
	rot()
	for _, depth := range []int{10, 100} {
		ranked, err := c.Service.RankPages(t.Context(), service.Operator(), service.RankPagesInput{Queries: []string{"lighthouse"}, Depth: depth})
		if err != nil || len(ranked.Rankings[0].Paths) != 1 {
			t.Errorf("%v, %v", ranked, err)
		}
	}
}

// Without a server, the command indexes published sources itself.
func TestASearchWithoutAServerIndexesWhatIsPublished(t *testing.T) {
	c, _ := withPages(t)
	if _, err := c.Service.PublishSource(t.Context(), service.Operator(), service.PublishSourceInput{Space: service.SpaceRef{User: "ann"}, Source: space.Source{ID: "notes", Dir: "pages", Everybody: true}}); err != nil {
		t.Fatal(err)
	}
	answer, err := c.Service.Search(t.Context(), service.Operator(), service.SearchInput{Query: "lighthouse", Source: "notes"})
	if err != nil || len(answer.Results) != 1 || answer.Results[0].Path != "/library/docs/notes/77.md" || len(answer.Notes) > 0 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// A search right after an import finds its pages or says that the index is behind,
// never that no page has them: for an AI, and over the REST API for whoever reads
// what is published of the space. A person at the command line waits.
func TestASearchRightAfterAnImportClaimsNothingThatIsNotSo(t *testing.T) {
	for name, wait := range map[string]time.Duration{"that may wait": 2 * time.Second, "that may not": 0} {
		t.Run(name, func(t *testing.T) {
			cfg := settings(t)
			cfg.Search.Wait = wait
			r := boot(t, cfg)
			client, err := admin.Dial(t.Context(), SocketPath(cfg.DataDir))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			const files = 2577
			for i := range files {
				text := fmt.Sprintf("# Page %d\n\nSome words on a line, and hydrangea.\n", i)
				if i == files-1 {
					text += "The heliotrope blooms.\n"
				}
				err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("pages/%d/%d.md", i%40, i), Mode: 0o644, Size: int64(len(text))})
				if _, werr := io.WriteString(w, text); err != nil || werr != nil {
					t.Fatal(err, werr)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := admin.Do(t.Context(), client, (*service.Service).PublishSource, service.PublishSourceInput{
				Space: service.SpaceRef{User: "ann"}, Source: space.Source{ID: "notes", Everybody: true}, Consent: sources.Consent{WithMemory: true},
			}); err != nil {
				t.Fatal(err)
			}
			claimsNothing := func(who, answer string) {
				t.Helper()
				behind := strings.Contains(answer, " behind, so ") || strings.Contains(answer, " not indexed yet ")
				if strings.Contains(answer, "No page") || !strings.Contains(answer, "16/2576.md") && !behind {
					t.Errorf("%s reads %s", who, answer)
				}
			}
			if res, err := client.Import(t.Context(), service.ImportSpaceInput{Space: service.SpaceRef{User: "ann"}, Kind: service.ImportTar, Stream: &b}); err != nil || res.Files != files {
				t.Fatal(res, err)
			}
			claimsNothing("an AI", r.ask("search", `{"query":"heliotrope source:space"}`))
			claimsNothing("a reader of what is published", r.find("heliotrope"))
			line, err := admin.Do(t.Context(), client, (*service.Service).Search, service.SearchInput{Query: "heliotrope", Source: "space"})
			if err != nil || len(line.Results) == 0 || line.Results[0].Path != "pages/16/2576.md" || len(line.Notes) > 0 {
				t.Errorf("a person at the command line reads %+v, %v", line, err)
			}
		})
	}
}

// find searches the library over the REST API.
func (r *running) find(query string) string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, strings.TrimSuffix(r.URL(), "/mcp")+"/api/sandbox/search", strings.NewReader(fmt.Sprintf(`{"query":%q}`, query)))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", res.StatusCode, b)
}

// A search whose index is at head does not wait for it to be made again.
func TestASearchGoesOnWhileTheIndexIsMadeAnew(t *testing.T) {
	c, _ := withPages(t)
	x, err := openIndex(c.Config, c.Log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	c.Service.Attach(service.Running{Index: x})
	ann := service.SpaceRef{User: "ann"}
	begun, goOn, ended := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		ctx := service.WithProgress(context.Background(), func(string) {
			select {
			case begun <- struct{}{}:
			default:
			}
			<-goOn
		})
		_, err := c.Service.Reindex(ctx, service.Operator(), service.ReindexInput{Space: ann})
		ended <- err
	}()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatal("the index was made anew already", err)
	}
	answer, err := c.Service.Search(testenv.Context(t), service.Operator(), service.SearchInput{Space: ann, Query: "lighthouse", Source: "space"})
	if err != nil || len(answer.Results) != 1 || answer.Results[0].Path != "pages/77.md" {
		t.Errorf("%+v, %v", answer, err)
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
}
