package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/gitstore/sources/upstream"
	"satchel/internal/fault"
	"satchel/internal/testenv"
)

// onHost is an upstream.Run for documents of the test, without a sandbox.
func onHost(t *testing.T) upstream.Run {
	testenv.NeedProgram(t, "pandoc")
	testenv.NeedProgram(t, "pdftotext")
	return func(ctx context.Context, c upstream.Command) ([]byte, int, error) {
		dir := t.TempDir()
		for name, content := range c.Files {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				return nil, 0, err
			}
		}
		cmd := exec.CommandContext(ctx, "bash", "-c", c.Shell)
		cmd.Dir = dir
		if err := cmd.Run(); err != nil {
			if x, ok := errors.AsType[*exec.ExitError](err); ok {
				return nil, x.ExitCode(), nil
			}
			return nil, 0, err
		}
		out, err := os.ReadFile(filepath.Join(dir, c.Output))
		return out, 0, err
	}
}

// manual is the document of which pandoc makes others.
const manual = `---
title: The kettle
author: Ann
---

# Use {#use}

Fill the kettle, then press **the button**. See [the site](https://kettle.example/faq) and [use](#use).

![A kettle](kettle.png)

| Cups | Minutes |
|------|---------|
| 1    | 2       |
| 4    | 5       |

` + "``` python\nboil(cups=4)\n```" + `

# Care

1. Unplug it.
2. Use vinegar, not \<soap>.
`

// made returns the manual in another format.
func made(t *testing.T, format string) []byte {
	t.Helper()
	dir := t.TempDir()
	picture := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
	if err := os.WriteFile(filepath.Join(dir, "kettle.png"), []byte(picture), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), testenv.NeedProgram(t, "pandoc"), "--from", "markdown", "--to", format, "--standalone", "--output", "out")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(manual)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pdf returns a PDF with a page for each text, whose lines are below each other.
func pdf(pages ...string) []byte {
	var objects []string
	add := func(s string) int { objects = append(objects, s); return len(objects) }
	add("") // the catalog
	add("") // the list of pages
	font := add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	var kids []string
	for _, p := range pages {
		var text strings.Builder
		text.WriteString("BT /F1 12 Tf 14 TL 72 720 Td\n")
		for l := range strings.SplitSeq(p, "\n") {
			fmt.Fprintf(&text, "(%s) Tj T*\n", strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(l))
		}
		text.WriteString("ET\n")
		body := add(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", text.Len(), text.String()))
		kids = append(kids, fmt.Sprintf("%d 0 R", add(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 %d 0 R >> >> /Contents %d 0 R >>", font, body))))
	}
	objects[0] = "<< /Type /Catalog /Pages 2 0 R >>"
	objects[1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(kids), strings.Join(kids, " "))
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return b.Bytes()
}

const notebookText = `{"nbformat": 4, "nbformat_minor": 5, "metadata": {"language_info": {"name": "python"}}, "cells": [
 {"cell_type": "markdown", "source": ["# Boiling\n", "\n", "Water boils.\n", "![plot](attachment:plot.png)\n"]},
 {"cell_type": "code", "source": "boil(4)", "outputs": [
  {"output_type": "stream", "text": ["\u001b[31m5 minutes\u001b[0m\n"]},
  {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure size 640x480>"}},
  {"output_type": "execute_result", "data": {"text/html": "<table></table>", "text/plain": ["cups minutes\n", "4 5"]}},
  {"output_type": "error", "ename": "DryError", "evalue": "no water", "traceback": []}]}]}`

const captionText = "WEBVTT\n\n00:00:01.000 --> 00:00:03.000\n<v Ann>Fill the kettle &amp; wait.\n\n00:00:03.000 --> 00:00:05.000\nFill the kettle &amp; wait.\nThen pour.\n\n01:02:03.500 --> 01:02:05.000\nGoodbye.\n"

func TestConvert(t *testing.T) {
	run := onHost(t)
	office := []string{"# Use\n", "**the button**", "[the site](https://kettle.example/faq)", "``` python\nboil(cups=4)\n```", "# Care\n", "1.  Unplug it.", "\\<soap\\>", "title: The kettle"}
	for name, c := range map[string]struct {
		content []byte
		has     []string
		hasNot  []string
	}{
		"kettle.docx": {made(t, "docx"), slices.DeleteFunc(slices.Clone(office), func(s string) bool { return strings.HasPrefix(s, "```") }), []string{"png", "<img", "<span", "<div"}},
		"kettle.odt":  {made(t, "odt"), []string{"# Use\n", "[the site](https://kettle.example/faq)", "# Care\n"}, []string{"png", "<img", "<span", "<div"}},
		"kettle.rtf":  {made(t, "rtf"), []string{"Use", "the button", "Care"}, []string{"png", "<img"}},
		"kettle.epub": {made(t, "epub"), office, []string{"png", "<img", "<span", "<div", "identifier"}},
		"kettle.pdf":  {pdf("The kettle\nFill it <now>.", "", "# 2 cups\n---"), []string{"# kettle\n", "## Page 1\n\nThe kettle\nFill it \\<now>.", "## Page 3\n\n\\# 2 cups"}, []string{"Page 2"}},
		"b.ipynb": {[]byte(notebookText), []string{"# Boiling\n", "```python\nboil(4)\n```", "```text\n5 minutes\n```", "cups minutes\n4 5", "DryError: no water"},
			[]string{"plot", "Figure", "iVBOR", "<table>"}},
		"talk.vtt": {[]byte(captionText), []string{"# talk\n", "[0:01] Fill the kettle & wait. Then pour.\n", "[1:02:03] Goodbye.\n"}, []string{"<v", "-->"}},
		"talk.srt": {[]byte("1\r\n00:00:01,000 --> 00:00:02,000\r\nHello\r\n\r\n2\r\n00:00:02,500 --> 00:00:03,000\r\nthere.\r\n"), []string{"Hello there.\n"}, []string{"-->", "\r"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := upstream.Convert(t.Context(), run, name, c.content)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range c.has {
				if !strings.Contains(string(got), s) {
					t.Errorf("%q is missing in\n%s", s, got)
				}
			}
			for _, s := range c.hasNot {
				if strings.Contains(string(got), s) {
					t.Errorf("%q is in\n%s", s, got)
				}
			}
			if strings.HasSuffix(name, ".docx") || strings.HasSuffix(name, ".epub") {
				for _, row := range []string{"1", "2", "4", "5"} {
					if !strings.Contains(string(got), "| "+row+" ") {
						t.Errorf("the table lost %s in\n%s", row, got)
					}
				}
			}
		})
	}
}

// A document that cannot be converted has a reason, and its message says what to do.
func TestConvertRefuses(t *testing.T) {
	run := onHost(t)
	missing := func(context.Context, upstream.Command) ([]byte, int, error) { return nil, 127, nil }
	closed := func(context.Context, upstream.Command) ([]byte, int, error) {
		return nil, 0, fault.New(fault.Unavailable, "No sandbox can start here.")
	}
	for _, c := range []struct {
		name    string
		run     upstream.Run
		content []byte
		reason  upstream.Reason
		hint    string
	}{
		{"a.pdf", missing, pdf("A"), "needs_poppler-utils", "apt install poppler-utils"},
		{"a.docx", missing, nil, "needs_pandoc", "apt install pandoc"},
		{"a.pdf", nil, pdf("A"), upstream.NeedsSandbox, "doctor"},
		{"a.pdf", closed, pdf("A"), upstream.NeedsSandbox, "doctor"},
		{"a.pdf", run, []byte("%PDF-1.4 and nothing"), upstream.Unreadable, "damaged"},
		{"a.pdf", run, pdf(""), upstream.Unreadable, "OCR"},
		{"a.docx", run, []byte("PK"), upstream.Unreadable, "damaged"},
		{"a.ipynb", run, []byte("{}"), upstream.Unreadable, "cells"},
		{"a.vtt", run, []byte("WEBVTT\n"), upstream.Unreadable, "captions"},
		{"a.exe", run, nil, upstream.Unreadable, ".exe"},
		{"a.pdf", run, make([]byte, 65<<20), upstream.TooLarge, "64"},
	} {
		_, err := upstream.Convert(t.Context(), c.run, c.name, c.content)
		r, ok := errors.AsType[*upstream.Refusal](err)
		if !ok || r.Reason != c.reason || !strings.Contains(fault.PublicOf(err), c.hint) {
			t.Errorf("%s: %v, want %s with %q", c.name, err, c.reason, c.hint)
		}
	}
}

// A document cannot make pandoc read other files of the machine.
func TestAttackADocumentThatIncludesFiles(t *testing.T) {
	run := onHost(t)
	secret := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(secret, []byte("quixotic"), 0o600); err != nil {
		t.Fatal(err)
	}
	rtf := `{\rtf1 Text {\field{\*\fldinst INCLUDETEXT "` + secret + `"}{\fldrslt }}{\object\objemb{\*\objdata ` + secret + `}}}`
	page := `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>T</title></head><body><p>Text</p>` +
		`<iframe src="` + secret + `"></iframe><iframe src="file://` + secret + `"></iframe><object data="` + secret + `"></object><p>&x;</p></body></html>`
	epub := zipped(t,
		"mimetype", "application/epub+zip",
		"META-INF/container.xml", `<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles><rootfile full-path="c.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`,
		"c.opf", `<?xml version="1.0"?><!DOCTYPE package [<!ENTITY x SYSTEM "file://`+secret+`">]><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T&x;</dc:title></metadata><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/><item id="b" href="../../../../../..`+secret+`" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>`,
		"a.xhtml", page)
	for name, content := range map[string][]byte{"a.rtf": []byte(rtf), "a.epub": epub} {
		got, err := upstream.Convert(t.Context(), run, name, content)
		if strings.Contains(string(got), "quixotic") {
			t.Errorf("attack: %s reads a file: %s, %v", name, got, err)
		}
	}
}
