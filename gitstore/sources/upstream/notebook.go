package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
)

func isNotebook(ext string) bool { return ext == ".ipynb" }

// notebookFile is the part of a Jupyter notebook (format 4) that becomes a page.
type notebookFile struct {
	Cells []struct {
		Type    string           `json:"cell_type"`
		Source  lines            `json:"source"`
		Outputs []notebookOutput `json:"outputs"`
	} `json:"cells"`
	Metadata struct {
		Title      string `json:"title"`
		KernelSpec struct {
			Language string `json:"language"`
		} `json:"kernelspec"`
		LanguageInfo struct {
			Name string `json:"name"`
		} `json:"language_info"`
	} `json:"metadata"`
}

type notebookOutput struct {
	Type  string                     `json:"output_type"`
	Text  lines                      `json:"text"`
	Data  map[string]json.RawMessage `json:"data"`
	Name  string                     `json:"ename"`
	Value string                     `json:"evalue"`
}

// lines is a text that is a string or a list of lines in JSON.
type lines string

func (l *lines) UnmarshalJSON(b []byte) error {
	var list []string
	if err := json.Unmarshal(b, &list); err == nil {
		*l = lines(strings.Join(list, ""))
		return nil
	}
	return json.Unmarshal(b, (*string)(l))
}

// maxOutput limits the bytes of an output of a notebook. Longer outputs are mostly data or logs.
const maxOutput = 4000

var (
	// embedded matches images that are part of a notebook.
	embedded = regexp.MustCompile(`!\[[^\]\n]*\]\((?:attachment|data):[^)\n]*\)`)
	terminal = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)
)

// notebook returns a Jupyter notebook as Markdown. Blocks of code name their language. Of the
// outputs, only the text stays.
func notebook(name string, content []byte) ([]byte, error) {
	var n notebookFile
	if err := json.Unmarshal(content, &n); err != nil || len(n.Cells) == 0 {
		return nil, refuse(Unreadable, "The notebook %s has no cells that can be read. Save it again in the format 4.", name)
	}
	language := cmp.Or(n.Metadata.LanguageInfo.Name, n.Metadata.KernelSpec.Language, "python")
	if strings.ContainsAny(language, "`\n ") {
		language = ""
	}
	var b bytes.Buffer
	if n.Metadata.Title != "" {
		b.WriteString("# " + oneLine(n.Metadata.Title) + "\n\n")
	}
	for _, c := range n.Cells {
		text := strings.TrimSpace(string(c.Source))
		switch {
		case text == "":
		case c.Type == "markdown":
			b.WriteString(strings.TrimSpace(embedded.ReplaceAllString(text, "")) + "\n\n")
		case c.Type == "code":
			fence(&b, language, text)
		default:
			fence(&b, "text", text)
		}
		for _, o := range c.Outputs {
			if text := o.plain(); text != "" {
				fence(&b, "text", text)
			}
		}
	}
	if len(bytes.TrimSpace(b.Bytes())) == 0 {
		return nil, refuse(Unreadable, "The notebook %s has no text.", name)
	}
	return titled(name, b.Bytes()), nil
}

// plain returns the text of an output, or "".
func (o notebookOutput) plain() string {
	text := string(o.Text)
	if o.Type == "error" {
		text = o.Name + ": " + o.Value
	}
	for kind := range o.Data {
		if strings.HasPrefix(kind, "image/") {
			return "" // the text of an image is only the name of an object
		}
	}
	var l lines
	if json.Unmarshal(o.Data["text/plain"], &l) == nil {
		text += string(l)
	}
	text = strings.Trim(terminal.ReplaceAllString(text, ""), "\n")
	if len(text) > maxOutput {
		text = strings.ToValidUTF8(text[:maxOutput], "") + "\n…"
	}
	return text
}

// fence writes a block of code. Its fence is longer than any in the code.
func fence(b *bytes.Buffer, language, text string) {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	b.WriteString(mark + language + "\n" + text + "\n" + mark + "\n\n")
}
