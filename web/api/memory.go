package api

import (
	"net/http"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

func (s *Server) memoryRoutes() []route {
	return []route{
		on(http.MethodGet, "/api/memory", space.ScopeRead, about{id: "memory", summary: "The facts of your space", detail: "Includes the files under memory/ that are not valid facts, with their problems.", answer: "Sorted by path."}, s.listFacts),
		on(http.MethodPut, "/api/memory", space.ScopeWrite, about{
			id: "remember", summary: "Save facts", detail: "What the user said replaces every fact. What was inferred replaces an inferred fact of equal or lower confidence.",
			answer: "An outcome for each fact, in order.", example: `{"facts": [{"type": "preference", "key": "seat", "value": "Prefers window seats", "explicit": true}]}`,
		}, s.remember),
		on(http.MethodDelete, "/api/memory/{type}/{key}", space.ScopeWrite, about{id: "forget", summary: "Remove a fact", detail: "The history keeps it.", answer: "The removed fact.", notFound: true, conflict: true, ifMatch: true}, s.forget),
	}
}

// factView is a fact of the space that the token reaches.
type factView struct {
	Path          space.Path   `json:"path" doc:"The path in the space."`
	Type          string       `json:"type,omitempty"`
	Key           string       `json:"key,omitempty"`
	Value         string       `json:"value,omitempty"`
	Cut           bool         `json:"cut,omitempty" doc:"Whether value is only the beginning."`
	Source        string       `json:"source,omitempty" doc:"user_explicit, inferred or imported."`
	Confidence    *float64     `json:"confidence,omitempty"`
	Client        string       `json:"client,omitempty" doc:"The client that saved the fact."`
	Tool          string       `json:"tool,omitempty" doc:"The tool of the client."`
	ByPerson      bool         `json:"confirmedByPerson" doc:"Whether a person confirmed the fact, on the pages or on the command line."`
	FirstSeen     string       `json:"firstSeen,omitempty" api:"format=date"`
	LastConfirmed string       `json:"lastConfirmed,omitempty" api:"format=date"`
	Expires       string       `json:"expires,omitempty" api:"format=date"`
	Expired       bool         `json:"expired"`
	Problem       string       `json:"problem,omitempty" doc:"Why the file is not a valid fact."`
	ETag          space.BlobID `json:"etag"`
}

func factOf(f service.MemoryFact) factView {
	return factView{
		Path: f.Path, Type: f.Type, Key: f.Key, Value: f.Value, Cut: f.Cut, Source: f.Source, Confidence: f.Confidence, Client: f.Client, Tool: f.Tool, ByPerson: f.ByPerson,
		FirstSeen: f.FirstSeen, LastConfirmed: f.Confirmed, Expires: f.Expires, Expired: f.Expired, Problem: f.Problem, ETag: f.Etag,
	}
}

func factsOf(list []service.MemoryFact) []factView {
	out := make([]factView, len(list))
	for i, f := range list {
		out[i] = factOf(f)
	}
	return out
}

type memoryView struct {
	Facts []factView `json:"facts"`
	Left  int        `json:"left,omitempty" doc:"Files that are not listed, because there are too many."`
}

// listFacts is GET /api/memory.
func (s *Server) listFacts(c *call, _ noBody) (memoryView, error) {
	list, err := s.o.Service.ListFacts(c.r.Context(), c.actor(), service.ListFactsInput{Space: c.actor().Space()})
	return memoryView{factsOf(list.Facts), list.Left}, err
}

// statedFact is a fact to save.
type statedFact struct {
	Type       string   `json:"type" doc:"Such as preference, person, project, decision, procedure or fact." api:"required"`
	Key        string   `json:"key" doc:"A short name." api:"required"`
	Value      string   `json:"value" api:"required"`
	Confidence *float64 `json:"confidence" doc:"Default: 1 if explicit, otherwise 0.7." api:"minimum=0,maximum=1"`
	Explicit   bool     `json:"explicit" doc:"Whether the user said it."`
	Expires    string   `json:"expires" doc:"The last day, such as 2027-01-31. The word never removes the day from an existing fact."`
	Base       string   `json:"baseEtag" doc:"The etag that the fact must have. The word none means that the fact must not exist. Default: any version."`
}

type rememberRequest struct {
	Facts []statedFact `json:"facts" api:"required,minItems=1,maxItems=$facts"`
}

func (r rememberRequest) check() error { return nil } // Remember checks the facts

type rememberedView struct {
	Commit   space.CommitID     `json:"commit,omitempty" doc:"Missing if nothing changed."`
	Facts    []rememberedResult `json:"facts"`
	Warnings []space.Warning    `json:"warnings,omitempty"`
}

type rememberedResult struct {
	Type    string        `json:"type"`
	Key     string        `json:"key"`
	Outcome facts.Outcome `json:"outcome" api:"enum=added|replaced|confirmed|unchanged|kept|invalid|refused|stale"`
	Before  *factView     `json:"before,omitempty" doc:"The fact that was there."`
	Why     string        `json:"why,omitempty" doc:"Why the fact was not saved."`
	Alike   []factView    `json:"alike,omitempty" doc:"Facts that the new one may repeat or contradict."`
}

// remember is PUT /api/memory.
func (s *Server) remember(c *call, a rememberRequest) (rememberedView, error) {
	in := service.RememberInput{Space: c.actor().Space()}
	for _, f := range a.Facts {
		in.Facts = append(in.Facts, facts.Statement(f))
	}
	done, err := s.o.Service.Remember(c.r.Context(), c.actor(), in)
	if err != nil {
		return rememberedView{}, err
	}
	out := rememberedView{Commit: done.Commit, Facts: []rememberedResult{}, Warnings: done.Warnings}
	for _, f := range done.Facts {
		r := rememberedResult{Type: f.Type, Key: f.Key, Outcome: f.Outcome, Why: f.Why, Alike: factsOf(f.Alike)}
		if f.Before != nil {
			before := factOf(*f.Before)
			r.Before = &before
		}
		out.Facts = append(out.Facts, r)
	}
	return out, nil
}

type forgottenView struct {
	Commit  space.CommitID `json:"commit"`
	Removed []factView     `json:"removed"`
}

// forget is DELETE /api/memory/{type}/{key}.
func (s *Server) forget(c *call, _ noBody) (forgottenView, error) {
	name := c.r.PathValue("type") + "/" + c.r.PathValue("key")
	base, err := c.ifMatch()
	if err != nil {
		return forgottenView{}, err
	}
	done, err := s.o.Service.Forget(c.r.Context(), c.actor(), service.ForgetInput{Space: c.actor().Space(), Keys: []string{name}, Base: base})
	if err != nil {
		return forgottenView{}, err
	}
	if len(done.Removed) == 0 {
		return forgottenView{}, fault.New(fault.NotFound, "There is no fact %s.", quoted(name))
	}
	return forgottenView{done.Commit, factsOf(done.Removed)}, nil
}
