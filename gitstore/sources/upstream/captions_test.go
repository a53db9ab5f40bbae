package upstream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseCaptions(t *testing.T) {
	want := []caption{{1500 * time.Millisecond, "Hello & welcome"}, {time.Hour + 2*time.Second, "to Go."}}
	for name, content := range map[string]string{
		"WebVTT":         "\ufeffWEBVTT\nKind: captions\n\nNOTE no cue\n\n1\n00:01.500 --> 00:03.000 align:start\nHello &amp;\n<c.yellow>welcome</c>\n\n01:00:02.000 --> 01:00:04.000\n<00:00:02.100>to <b>Go</b>.\n",
		"rolling WebVTT": "WEBVTT\n\n00:00:01.500 --> 00:00:03.000\nHello &amp; welcome\n\n00:00:03.000 --> 00:00:03.010\nHello &amp; welcome\n\n01:00:02.000 --> 01:00:04.000\nHello &amp; welcome\nto Go.\n",
		"SubRip":         "1\r\n00:00:01,500 --> 00:00:03,000\r\nHello & <i>welcome</i>\r\n\r\n2\r\n01:00:02,000 --> 01:00:04,000\r\nto Go.\r\n",
		"json3":          `{"events": [{"tStartMs": 0}, {"tStartMs": 1500, "segs": [{"utf8": "Hello &"}, {"utf8": " welcome"}]}, {"tStartMs": 3000, "aAppend": 1, "segs": [{"utf8": "\n"}]}, {"tStartMs": 3602000, "segs": [{"utf8": "to\nGo."}]}]}`,
		"srv3":           `<?xml version="1.0" encoding="utf-8" ?><timedtext format="3"><head><ws id="0"/></head><body><p t="1500" d="2000">Hello &amp; <s t="9">welcome</s></p><p t="2000"></p><p t="3602000">to Go.</p></body></timedtext>`,
		"srv1":           `<transcript><text start="1.5" dur="2">Hello &amp;amp; welcome</text><text start="3602">to Go.</text></transcript>`,
	} {
		got, err := parseCaptions([]byte(content))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for content, bad := range map[string]bool{"": false, "{}": false, `{"events": 5}`: true, "<html><p t=\"1\">no": true, "some text": true, "<timedtext>": true} {
		if got, err := parseCaptions([]byte(content)); len(got) != 0 || errors.Is(err, errCaptions) != bad {
			t.Errorf("%q: %v, %v", content, got, err)
		}
	}
}

// A paragraph ends after a sentence, and does not grow without end where nobody writes points.
func TestTranscriptText(t *testing.T) {
	link := func(at time.Duration) string { return fmt.Sprintf("/w&t=%ds", at/time.Second) }
	cues := []caption{{0, "One"}, {10 * time.Second, "two."}, {20 * time.Second, "Three"}, {31 * time.Second, "three."}, {62 * time.Second, "Four"}}
	if got, want := string(transcriptText(cues, link)), "[0:00](/w&t=0s) One two. Three three.\n\n[1:02](/w&t=62s) Four\n"; got != want {
		t.Errorf("%q", got)
	}
	if got, want := string(transcriptText(cues[:1], nil)), "0:00 One\n"; got != want {
		t.Errorf("%q", got)
	}
	cues = nil
	for i := range 200 {
		cues = append(cues, caption{time.Duration(i) * time.Second, strings.Repeat("word ", 20) + "x"})
	}
	for p := range strings.SplitSeq(string(transcriptText(cues, link)), "\n\n") {
		if len(p) > maxParagraphText+200 {
			t.Errorf("a paragraph has %d bytes", len(p))
		}
	}
	if playTime(time.Hour+2*time.Minute+3*time.Second) != "1:02:03" || playTime(63*time.Second) != "1:03" {
		t.Error("a clock is wrong")
	}
}

func TestChooseCaptions(t *testing.T) {
	tracks := []track{{"1", "de", false}, {"2", "en", true}, {"3", "en-GB", false}, {"4", "fr", true}}
	for languages, want := range map[string]string{"": "3", "fr": "4", "es,de": "1", "en": "3", "EN-gb": "3", "es": ""} {
		got := choose(tracks, strings.FieldsFunc(languages, func(r rune) bool { return r == ',' }))
		if got == nil && want != "" || got != nil && got.address != want {
			t.Errorf("%q chooses %+v", languages, got)
		}
	}
	if got := choose(tracks[:1], nil); got == nil || got.address != "1" {
		t.Errorf("the only track is %+v", got)
	}
}

func FuzzParseCaptions(f *testing.F) {
	f.Add([]byte("WEBVTT\n\n00:01.500 --> 00:03.000\nHello\n"))
	f.Add([]byte(`{"events": [{"tStartMs": 1, "segs": [{"utf8": "a"}]}]}`))
	f.Add([]byte(`<timedtext><p t="1">a</p></timedtext>`))
	f.Fuzz(func(t *testing.T, content []byte) {
		cues, err := parseCaptions(content)
		if err != nil {
			return
		}
		for _, c := range cues {
			if c.start < 0 || c.text == "" || strings.Contains(c.text, "\n") {
				t.Errorf("%+v", c)
			}
		}
		transcriptText(cues, nil)
	})
}

func FuzzParseTree(f *testing.F) {
	f.Add([]byte(`{"openapi": "3.1.0", "paths": {"/a": {"get": {"parameters": [{"$ref": "#/x"}]}}}, "x": null}`))
	f.Add([]byte("openapi: 3.0.0\npaths: &a {/b: {post: {}}}\ncomponents: {schemas: *a}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		root, err := parseTree(content)
		if err != nil {
			return
		}
		d := newAPI("https://a.example/", root, &webSink{})
		d.index()
		for _, op := range d.operations {
			d.operation(op)
		}
		for _, s := range d.schemas {
			d.schema(s)
		}
	})
}
