package parse

import (
	"strings"
)

// The expressions of inline markup. The first group of each is what a reader sees.
var (
	rstRole    = Lazily("(?::[A-Za-z][A-Za-z0-9:+-]*:)`[~!]?([^`<\\n]*?)\\s*(?:<[^`>\\n]*>)?`")
	rstLink    = Lazily("`([^`<\\n]+?)\\s*<[^`>\\n]*>`_{0,2}")
	adocLink   = Lazily(`(?:\b(?:https?|ftp|mailto|link|xref|image|footnote|kbd|btn|menu|icon)::?|\b(?:https?|ftp)://)[^\s\[\]]*\[([^\]\n]*)\]`)
	adocAnchor = Lazily(`<<[^,>\n]*?(?:,\s*)?([^,>\n]*)>>`)
)

// hiddenDirectives are directives of reStructuredText whose argument a reader does not see.
var hiddenDirectives = set(`code code-block sourcecode highlight image figure include literalinclude module currentmodule py:currentmodule
	automodule toctree contents raw index role default-role testsetup testcode doctest parsed-literal tabularcolumns only ifconfig meta rst-class container class math csv-table list-table table tabs`)

// readableRestructured returns what a reader sees of reStructuredText. It removes the names and
// options of directives, hidden arguments, targets, comments, and the names and targets of roles.
func readableRestructured(text string) string {
	if !strings.Contains(text, "..") && !strings.Contains(text, "`") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	options := false // the lines of a directive's options follow
	for l := range strings.Lines(text) {
		t := strings.TrimSpace(l)
		if options && strings.HasPrefix(t, ":") {
			if name, _, ok := strings.Cut(t[1:], ":"); ok && !strings.Contains(name, " ") {
				b.WriteByte('\n')
				continue
			}
		}
		options = false
		rest, marked := strings.CutPrefix(t, ".. ")
		switch name, argument, ok := strings.Cut(rest, "::"); {
		case !marked && t != "..":
			b.WriteString(l)
		case !ok || strings.HasPrefix(rest, "_") || strings.ContainsAny(name, " ") && !strings.HasPrefix(rest, "|"):
			b.WriteByte('\n') // a target or a comment
		default:
			options = true
			if !hiddenDirectives[name] && !strings.HasPrefix(rest, "|") {
				b.WriteString(argument)
			}
			b.WriteByte('\n')
		}
	}
	text = b.String()
	if strings.Contains(text, ":`") {
		text = rstRole().ReplaceAllString(text, "$1")
	}
	if strings.Contains(text, ">`") {
		text = rstLink().ReplaceAllString(text, "$1")
	}
	return text
}

// readableAsciiDoc returns what a reader sees of AsciiDoc: without attributes, the marks of
// blocks, includes, conditions, comments, and the targets of links.
func readableAsciiDoc(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	listing := "" // the line that ends the open listing
	for l := range strings.Lines(text) {
		t := strings.TrimSpace(l)
		switch {
		case listing != "":
			if t == listing {
				listing = ""
			}
			b.WriteString(l)
			continue
		case len(t) >= 4 && (strings.Trim(t, "-") == "" || strings.Trim(t, ".") == ""):
			listing = t
		case strings.HasPrefix(t, "//") && !strings.HasPrefix(t, "////"), isAttribute(t), isBlockMark(t),
			strings.HasPrefix(t, "include::"), strings.HasPrefix(t, "ifdef::"), strings.HasPrefix(t, "ifndef::"),
			strings.HasPrefix(t, "ifeval::"), strings.HasPrefix(t, "endif::"), strings.HasPrefix(t, "toc::"):
			b.WriteByte('\n')
			continue
		}
		if strings.Contains(l, "[") {
			l = adocLink().ReplaceAllString(l, "$1")
		}
		if strings.Contains(l, "<<") {
			l = adocAnchor().ReplaceAllString(l, "$1")
		}
		b.WriteString(l)
	}
	return b.String()
}

// isAttribute reports whether a line sets an attribute of an AsciiDoc document: ":toc: left".
func isAttribute(t string) bool {
	if !strings.HasPrefix(t, ":") {
		return false
	}
	name, _, ok := strings.Cut(t[1:], ":")
	return ok && name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_!") == ""
}

// isBlockMark reports whether a line holds the attributes or the anchor of the next block:
// "[source,java]", "[[anchor]]".
func isBlockMark(t string) bool {
	return len(t) > 2 && t[0] == '[' && t[len(t)-1] == ']' && !strings.Contains(t[1:len(t)-1], "](")
}
