package htmlmark

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxNodes bounds the nodes that the parser may create. The largest pages of
	// documentation have about 100,000. A node takes some 150 bytes.
	maxNodes = 400_000
	// maxReadability bounds the elements of a page that the readability library reads. The
	// library scores each paragraph several times.
	maxReadability = 20_000
	// maxNesting bounds lists and quotations within each other. The converter copies their
	// text once for each level.
	maxNesting = 16
	// maxCells bounds the cells of a table. A merged cell counts once for each cell that it covers.
	maxCells = 50_000
	// maxSpan bounds colspan and rowspan of a cell.
	maxSpan = 64
	// maxBrackets bounds the number of opening brackets times the bytes of the text. To
	// escape the text, the converter searches for the end of each bracket.
	maxBrackets = 500_000_000
)

// formatting are the elements that the parser opens again in each following block until they
// are closed. So a page of n bytes can have n² elements.
var formatting = set("a b big code em font i nobr s small strike strong tt u")

// marking are the elements in which an end tag does not close formatting outside of them.
var marking = set("applet caption marquee math object select svg table template")

// cost returns an upper estimate of the nodes that the parser creates. It stops counting beyond
// maxNodes.
func cost(page []byte) int {
	type level struct {
		name string
		open map[string]int
		sum  int
	}
	levels := []level{{open: map[string]int{}}}
	unclosed, nodes := 0, 0
	z := html.NewTokenizer(bytes.NewReader(page))
	for nodes <= maxNodes {
		tt := z.Next()
		if tt == html.ErrorToken {
			break
		}
		nodes += 1 + unclosed
		if tt != html.StartTagToken && tt != html.EndTagToken {
			continue
		}
		raw, _ := z.TagName()
		name := string(raw)
		top := &levels[len(levels)-1]
		switch {
		case tt == html.StartTagToken && formatting[name]:
			if name == "a" && top.open["a"] > 0 {
				continue // the new link closes the open one
			}
			top.open[name]++
			top.sum++
			unclosed++
		case tt == html.EndTagToken && formatting[name] && top.open[name] > 0:
			top.open[name]--
			top.sum--
			unclosed--
		case tt == html.StartTagToken && marking[name]:
			levels = append(levels, level{name: name, open: map[string]int{}})
		case tt == html.EndTagToken && name == top.name && len(levels) > 1:
			parent := &levels[len(levels)-2]
			for n, count := range top.open {
				parent.open[n] += count
			}
			parent.sum += top.sum
			levels = levels[:len(levels)-1]
		}
	}
	return nodes
}

// bound changes what would take the converter too long: deep lists and quotations, tables in
// tables, and tables with too many cells.
func bound(root *html.Node) {
	var tables []*html.Node
	var walk func(n *html.Node, nesting int, inTable bool)
	walk = func(n *html.Node, nesting int, inTable bool) {
		switch n.DataAtom {
		case atom.Ul, atom.Ol, atom.Blockquote, atom.Dl:
			if nesting++; nesting > maxNesting {
				rename(n, atom.Div)
			}
		case atom.Li:
			if nesting > maxNesting {
				rename(n, atom.Div)
			}
		case atom.Table:
			if inTable {
				flatten(n)
			} else {
				tables = append(tables, n)
			}
			inTable = true
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, nesting, inTable)
		}
	}
	walk(root, 0, false)
	for _, t := range tables {
		boundTable(t)
	}
}

// boundTable limits the spans of a table. A table that is too large, or that has blocks such as
// lists or headings in its cells, becomes paragraphs.
func boundTable(t *html.Node) {
	rows, columns := 0, 0
	blocks := false
	each(t, func(n *html.Node) {
		switch n.DataAtom {
		case atom.Tr:
			rows++
			width := 0
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
					width += span(c, "colspan")
					rows += span(c, "rowspan") - 1
				}
			}
			columns = max(columns, width)
		case atom.Hr, atom.Ul, atom.Ol, atom.Blockquote, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			blocks = true
		}
		if _, ok := lookup(n, blockAttr); ok {
			blocks = true
		}
	})
	if blocks || rows*columns > maxCells {
		flatten(t)
		return
	}
	each(t, func(n *html.Node) { // a bar ends a cell even in code
		if n.Type == html.TextNode && n.Parent.DataAtom == atom.Code {
			n.Data = strings.ReplaceAll(n.Data, "|", `\|`)
		}
	})
}

// span limits a span of a cell to maxSpan, and returns it. key is colspan or rowspan.
func span(cell *html.Node, key string) int {
	n, err := strconv.Atoi(attr(cell, key))
	if err != nil || n < 1 {
		n = 1
	}
	n = min(n, maxSpan)
	if attr(cell, key) != "" {
		setAttr(cell, key, strconv.Itoa(n))
	}
	return n
}

// flatten turns a table and its cells into plain blocks.
func flatten(t *html.Node) {
	each(t, func(n *html.Node) {
		switch n.DataAtom {
		case atom.Table, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption, atom.Colgroup:
			rename(n, atom.Div)
		}
	})
}

// costly reports whether escaping the text would take too long.
func costly(root *html.Node) bool {
	brackets, size := 0, 0
	each(root, func(n *html.Node) {
		if n.Type == html.TextNode {
			brackets += strings.Count(n.Data, "[")
			size += len(n.Data)
		}
	})
	return brackets*size > maxBrackets
}
