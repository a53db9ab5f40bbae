package parse_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"satchel/tools/index/parse"
)

// outline returns the headings of a page with their lines, for tables.
func outline(name, text string) string {
	var b []string
	for _, s := range parse.Sections(name, []byte(text)) {
		b = append(b, fmt.Sprintf("%d %s %d-%d", s.Level, s.Title, s.From, s.To))
	}
	return strings.Join(b, ", ")
}

func TestHeadingsOfFormats(t *testing.T) {
	for _, c := range []struct{ what, name, text, want string }{
		{"reStructuredText", "a.rst", "=====\nTitle\n=====\n\nText.\n\nPart\n----\n\nx\n\nDeep\n~~~~\n\nNext\n----\n", "1 Title 1-16, 2 Part 7-14, 3 Deep 12-14, 2 Next 15-16"},
		{"no heading in a table of it", "a.rst", "Top\n===\n\n=====  =====\na      b\n=====  =====\n1      2\n=====  =====\n", "1 Top 1-8"},
		{"AsciiDoc", "a.adoc", "= Title\n\n== Part\n\n----\n== code\n----\n\n=== Deep\n", "1 Title 1-9, 2 Part 3-9, 3 Deep 9-9"},
		{"Org", "a.org", "#+TITLE: Plan\n* One\n#+BEGIN_SRC sh\n* no\n#+END_SRC\n** Two\n", "1 Plan 1-1, 1 One 2-6, 2 Two 6-6"},
		{"HTML over several lines", "a.html", "<h1>\n Big\n <em>title</em></h1>\n<p>x</p><script>\nvar s = '<h2>no</h2>'\n</script>\n<!-- <h2>no</h2> --><h2 class=\"x\">Part &amp; more</h2>", "1 Big title 1-7, 2 Part & more 7-7"},
		{"comments of Markdown", "a.md", "# A\n<!--\n# no\n-->\n# B\n{/*\n# no\n*/}\n", "1 A 1-4, 1 B 5-8"},
		{"a comment that never ends", "a.md", "<!-- x\n# A\n", "1 A 2-2"},
		{"code in a list and in a quote", "a.md", "# A\n- ```\n  # no\n  ```\n> ~~~\n> # no\n\n# B\n1. ```\n   # no\n   ```\n# C\n", "1 A 1-7, 1 B 8-11, 1 C 12-12"},
		{"nested fences", "a.md", "# A\n````md\n```\n# no\n```\n# no\n````\n# B\n", "1 A 1-7, 1 B 8-8"},
		{"MDX", "a.mdx", "import X from './x'\nexport const y = { a: 1 }\n\n# A\n\n<Tabs>\n  ## B\n</Tabs>\n", "1 A 4-8, 2 B 7-8"},
		{"Go", "a.go", "package a\n\n// T is\n// good.\ntype T struct{ x int }\n\n// Do does.\nfunc (t *T) Do() {\n\tfunc() {}()\n}\n\nfunc plain() {}\n", "2 T 3-6, 2 Do 7-11, 2 plain 12-12"},
		{"TypeScript", "a.ts", "export class Boat {\n  /** Sails. */\n  async sail() {}\n  static function x() {}\n}\nexport const useTide = () => {\n  function inner() {}\n}\nexport default async function main() {}\n", "2 Boat 1-5, 3 x 4-5, 2 useTide 6-8, 2 main 9-9"},
		{"Python", "a.py", "# a\nimport x\n\n@decorated\nclass A:\n    def f(self):\n        pass\n\nasync def g():\n    pass\n", "2 A 4-8, 3 f 6-8, 2 g 9-10"},
		{"Rust", "a.rs", "/// Docs.\npub struct S;\nimpl S {\n    pub fn new() -> S { S }\n}\n", "2 S 1-2, 2 S 3-5, 3 new 4-5"},
		{"data have none", "a.yaml", "# no\ntype: x\nfunction: y\n", ""},
		{"a notebook", "a.ipynb", notebook, "1 Tides 6-32, 2 Plot 28-32"},
		{"TOML before the text", "a.md", "+++\ntitle = \"T\"\n+++\n# A\n", "1 A 4-4"},
	} {
		if got := outline(c.name, c.text); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.what, got, c.want)
		}
	}
}

const notebook = `{
 "cells": [
  {
   "cell_type": "markdown",
   "source": [
    "# Tides\n",
    "The moon pulls the *sea*."
   ]
  },
  {
   "cell_type": "code",
   "source": [
    "# not a heading\n",
    "tide(1)"
   ],
   "outputs": [{
    "data": {
     "image/png": "iVBORw0KGgoAAAANSUhEUgAA",
     "text/plain": [
      "height 2.1 m"
     ]
    }
   }]
  },
  {
   "cell_type": "markdown",
   "source": [
    "## Plot\n"
   ]
  }
 ]
}
`

func TestFrontMatterFormats(t *testing.T) {
	for _, c := range []struct{ what, name, text, title, description, tags string }{
		{"TOML", "a.md", "+++\ntitle = \"The \\\"T\\\"\" # x\ndescription = 'about it'\ndate = 2026-01-31\n[taxonomies]\ntags = [\"a\", 'b, c']\n[other]\ntitle = \"no\"\n+++\nBody", `The "T"`, "about it", "a|b, c"},
		{"JSON", "a.md", "{\n  \"title\": \"T\",\n  \"tags\": [\"a\", \"b\"],\n  \"description\": \"d\"\n}\n\nBody", "T", "d", "a|b"},
		{"TOML that never ends", "a.md", "+++\ntitle = \"T\"\n# H\n", "H", "", ""},
		{"a brace is no front matter", "a.md", "{\n# H\n", "H", "", ""},
		{"HTML", "a.html", "<html lang=en><head><title>T</title><meta name=\"description\" content=\"about &amp; more\"><meta name=keywords content='a, b'></head>", "T", "about & more", "a|b"},
		{"AsciiDoc with YAML", "a.adoc", "---\ntitle: T\n---\n= H\n", "T", "", ""},
	} {
		p := parse.Parse(c.name, []byte(c.text), 10)
		if p.Title != c.title || p.Description != c.description || strings.Join(p.Tags, "|") != c.tags {
			t.Errorf("%s: %q, %q, %q", c.what, p.Title, p.Description, p.Tags)
		}
	}
}

func TestWhatIsWorthIndexing(t *testing.T) {
	for _, c := range []struct{ what, name, text, with, without string }{
		{"HTML", "a.html", "<p>one<SCRIPT type=x>two</script> <b>th</b>ree<!-- four --> a < b &amp; &eacute;<style>five</style>", "one th é", "two four five SCRIPT"},
		{"subtitles", "a.vtt", "WEBVTT\n\n1\n00:00:01.000 --> 00:00:02.000\n<v Ann>Good morning\n", "Good morning", "WEBVTT 00:00 Ann -->"},
		{"a notebook", "a.ipynb", notebook, "Tides moon tide(1) height", "iVBOR cell_type source png"},
		{"links", "a.md", "[text](https://x.example/target) after", "text after", "target"},
		{"MDX", "a.mdx", mdx, "Saving Danger! Mind tide Install saved pairs A<B x.set('left') import-in-code shown-in-span", "className flex size-4 fromImport exportedNote handler JSXcomment DemoBox kind"},
		{"directives of Markdown", "a.md", "::read-more{to=\"/hidden\"}\n::\n\n:::tip[Shown label]\nInside text\n:::\n\n`code`{lang=\"secret\"} after\n", "Shown label Inside text code after", "read-more hidden tip lang secret"},
		{"sentences that begin with import and export", "a.md", "import duties are paid here\nexport is as hard as import\n", "import duties paid export hard", ""},
		{"a less-than sign", "a.md", "if a<b and c > d, or x <y, see <https://kept.example/>\n", "a<b y https://kept.example/", ""},
		{"a tag that never ends", "a.md", "<Never ends=\"\nmore text\n", "Never more text", ""},
		{"reStructuredText", "a.rst", rst, "Saving flask.Flask guide text Note this New in 2.0 print('.. kept')", "class doc target.html code-block maxdepth toctree _anchor hidden currentmodule"},
		{"AsciiDoc", "a.adoc", adoc, "Saving the guide Shown part alt words [kept]", "toc left source java include partial target.adoc anchor-id hidden ifdef"},
		{"Vue", "a.vue", "<script setup>\nimport Hidden from './secret'\nconst kept = 1\n</script>\n<template>\n<h1 class=\"flex\">Saving</h1>\n<Card title=\"Shown\" :handler=\"secret\">Inside</Card>\n</template>\n<style>\n.red { color: blue }\n</style>\n", "Saving Shown Inside kept", "Hidden secret flex handler red blue"},
		{"Astro", "a.astro", "---\nimport Hidden from './secret'\nconst kept = 1\n---\n<p class=\"flex\">Saving</p>\n", "Saving kept", "Hidden secret flex"},
		{"JSX", "a.tsx", "import {\n\tHidden,\n} from './secret'\n\nexport function Kept() {\n\treturn <p className=\"flex\">Saving</p>\n}\n", "Kept Saving return", "Hidden secret className flex"},
	} {
		got := parse.Indexable(parse.Format(c.name), c.text)
		for w := range strings.FieldsSeq(c.with) {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q lacks %q", c.what, got, w)
			}
		}
		for w := range strings.FieldsSeq(c.without) {
			if strings.Contains(got, w) {
				t.Errorf("%s: %q has %q", c.what, got, w)
			}
		}
	}
	for l, want := range map[string]string{
		"00:00:01.000 --> 00:00:02.000 align:start": "0:01", "1:02:03,500 --> 1:02:04,000": "1:02:03", "00:12:31.1 --> 00:12:32": "12:31", "02:03.4 --> 02:05": "2:03",
		"a --> b": "", "x": "", "-->": "",
	} {
		if got := parse.CueTime(l); got != want {
			t.Errorf("%q is at %q, want %q", l, got, want)
		}
	}
}

// A table that is larger than a chunk is cut between rows, and each piece is indexed with the
// names of its columns. The same holds for CSV.
func TestTablesAreCutWithTheirHeader(t *testing.T) {
	var md, csv strings.Builder
	md.WriteString("# T\n\nIntro.\n\n| Flag colour | Meaning |\n| --- | --- |\n")
	csv.WriteString("flag,meaning\n")
	for i := range 300 {
		fmt.Fprintf(&md, "| flag%03d | means something of number %d |\n", i, i)
		fmt.Fprintf(&csv, "flag%03d,means something of number %d\n", i, i)
	}
	for name, text := range map[string]string{"a.md": md.String(), "a.csv": csv.String()} {
		p, _ := chunkTexts(name, text)
		if len(p.Chunks) < 4 {
			t.Fatalf("%s: %d chunks", name, len(p.Chunks))
		}
		for i, c := range p.Chunks {
			head := text[c.Head[0]:c.Head[1]]
			if i > 0 && !strings.Contains(strings.ToLower(head), "meaning") || i == 0 && head != "" {
				t.Errorf("%s: chunk %d has the header %q", name, i, head)
			}
			if size := c.End - c.Start; size > parse.ChunkSplit+200 {
				t.Errorf("%s: chunk %d has %d bytes", name, i, size)
			}
		}
	}
	small := "# T\n\n" + strings.Repeat("word ", 380) + "\n\n| a | b |\n|---|---|\n" + strings.Repeat("| x | y |\n", 40)
	if _, texts := chunkTexts("a.md", small); !slices.ContainsFunc(texts, func(s string) bool { return strings.Count(s, "| x | y |") == 40 }) {
		t.Errorf("a small table was cut: %q", texts)
	}
}

// A heading without text, a rule, or front matter never forms a chunk alone, because it would
// be a useless result.
func TestNoChunkIsMereStructure(t *testing.T) {
	long := strings.Repeat("Words that say something.\n\n", 90)
	for _, text := range []string{
		"---\ntitle: T\n" + strings.Repeat("# comment\n", 100) + "---\n# A\n\n" + long,
		"# A\n\n" + long + "\n## B\n\n### C\n\n---\n\n</Tabs>\n",
		"# A\n\n" + strings.Repeat("## B\n\n### C\n\n", 100) + long,
	} {
		_, texts := chunkTexts("a.mdx", text)
		for i, s := range texts {
			if !strings.Contains(s, "Words") {
				t.Errorf("chunk %d of %d says nothing: %.100q", i, len(texts), s)
			}
		}
		if strings.Join(texts, "") != text {
			t.Error("the chunks are not the whole page")
		}
	}
}

// A page that consists of headings is cut like other pages.
func TestHeadingsWithoutTextAreCut(t *testing.T) {
	for _, text := range []string{strings.Repeat("###### h\n", 20_000), strings.Repeat("heron\n===\n", 20_000), strings.Repeat("# a\n\n", 20_000)} {
		p := parse.Parse("a.md", []byte(text), 4095)
		for _, c := range p.Chunks {
			if c.End-c.Start > 2*parse.ChunkSplit {
				t.Fatalf("%.20q: a chunk of %d bytes", text, c.End-c.Start)
			}
		}
	}
}

// A line of a megabyte is cut into chunks of the usual size: after sentences if there are any,
// and never within a character.
func TestLongLinesAreCut(t *testing.T) {
	for what, text := range map[string]string{
		"sentences": strings.Repeat("The boat leaves at noon. ", 20_000), "no blank": strings.Repeat("x1y2z3", 50_000),
		"Japanese": strings.Repeat("港の事務所は七時に開きます。", 5_000), "broken": strings.Repeat("\xbf", 50_000),
	} {
		p, texts := chunkTexts("a.md", "# A\n\n"+text+"\n\n## Last\n\nend\n")
		for i, c := range p.Chunks {
			if c.End-c.Start > 3*parse.ChunkTarget {
				t.Errorf("%s: chunk %d has %d bytes", what, i, c.End-c.Start)
			}
			if what == "Japanese" && strings.ContainsRune(texts[i], '\ufffd') {
				t.Errorf("%s: chunk %d is cut within a character", what, i)
			}
			if what == "sentences" && i > 1 && i < len(texts)-1 && !strings.HasPrefix(texts[i], "The boat") {
				t.Errorf("%s: chunk %d begins with %.20q", what, i, texts[i])
			}
		}
		if p.Lines != 7 || p.Chunks[len(p.Chunks)-1].Lines[1] != 7 {
			t.Errorf("%s: %d lines", what, p.Lines)
		}
	}
}

const mdx = `---
title: T
---
import { fromImport } from './x'
import {
  fromImport,
} from './x'

export const meta = {
  exportedNote: [1, 2],
}

# Saving

<DemoBox className="flex size-4" title="Danger!"
  handler={() => { if (a > b) { hide({}) } }}
/>

{/* JSXcomment */}

<Aside kind="x">Mind the tide.</Aside> and <b>Install</b> saved pairs, A<B.

` + "```js\nimport-in-code from 'y'\nx.set('left')\n```\n\nThe `<Box shown-in-span />` component.\n" + `
`

const rst = `.. _anchor:

Saving
======

.. currentmodule:: hidden

Use :class:` + "`~flask.Flask`" + ` with the :doc:` + "`guide text <target.html>`" + ` or ` + "`this <target.html>`_" + `.

.. toctree::
   :maxdepth: 2

.. code-block:: python

    print('.. kept')

.. admonition:: Note this

    New in 2.0

.. hidden comment
`

const adoc = `= Saving
:toc: left

[source,java]
----
[kept]
----

[[anchor-id]]
See xref:target.adoc[the guide] and <<anchor-id,Shown part>>.

ifdef::hidden[]
include::partial.adoc[]
image::target.adoc[alt words]
// hidden
`
