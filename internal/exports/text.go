package exports

import (
	"bytes"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// maxText limits the bytes of a file that is read as a whole.
const maxText = 16 << 20

// file reads a file that is not an archive.
func (b *builder) file(name string, r io.ReadSeeker, size int64) error {
	ext := strings.ToLower(path.Ext(base(name)))
	if b.Format == "" {
		switch {
		case isInstructions(name):
			b.Format = Instructions
		case ext == ".json":
			format, err := jsonFormat(r)
			if err != nil {
				return err
			}
			b.Format = format
		case ext == ".txt" || ext == ".md" || ext == "":
			b.Format = Memory
		default:
			return unknown()
		}
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if b.Format == ChatGPT || b.Format == Claude {
		if ext != ".json" {
			return b.memoryText(r, size)
		}
		return eachItem(r, b.item)
	}
	text, err := whole(r, size)
	if err != nil {
		return err
	}
	switch b.Format {
	case Mem0:
		return b.mem0(text)
	case Memory:
		return b.sentences(string(text))
	case Instructions:
		return b.instructions(name, text)
	}
	return fault.New(fault.Invalid, "This format needs a folder or a zip archive.")
}

func whole(r io.Reader, size int64) ([]byte, error) {
	if size > maxText {
		return nil, fault.New(fault.TooLarge, "The file is larger than the %s that a text may have.", bytesize.Text(maxText))
	}
	text, err := io.ReadAll(r)
	if err == nil && bytes.IndexByte(text, 0) >= 0 {
		return nil, fault.New(fault.Invalid, "The file is not text.")
	}
	return text, err
}

func (b *builder) memoryText(r io.Reader, size int64) error {
	text, err := whole(r, size)
	if err != nil {
		return err
	}
	return b.sentences(string(text))
}

// jsonFormat detects the format of a JSON file.
func jsonFormat(r io.Reader) (string, error) {
	format, err := itemsFormat(r)
	if format == "" && err == nil {
		format = Mem0
	}
	return format, err
}

var (
	// bullet matches the mark before an entry of a list. dated matches the date that assistants
	// write before the text of an entry.
	bullet = regexp.MustCompile(`^\s*(?:[-*•]|\d{1,4}[.)])\s+`)
	dated  = regexp.MustCompile(`^\[[^\]]{4,20}\]\s*[-–—:]\s*`)
	// heading matches a line that names the lines below it.
	heading = regexp.MustCompile(`^(#{1,6}\s.*|\*\*[^*]+\*\*:?|[^.!?]{1,80}:)$`)
)

// sentences adds a fact for each line of a text. Headings and fences are not facts.
func (b *builder) sentences(text string) error {
	for line := range strings.SplitSeq(clean(strings.TrimPrefix(text, "\ufeff")), "\n") {
		entry := bullet.ReplaceAllString(line, "")
		entry = strings.TrimSpace(dated.ReplaceAllString(strings.TrimSpace(entry), ""))
		if strings.HasPrefix(entry, "```") || strings.Trim(entry, "-*_= ") == "" || heading.MatchString(strings.TrimSpace(line)) {
			continue
		}
		if err := b.fact("", entry); err != nil {
			return err
		}
	}
	return nil
}

// isInstructions reports whether a file has the instructions of a project.
func isInstructions(name string) bool {
	return slices.Contains([]string{"claude.md", "claude.local.md", "agents.md", "gemini.md", ".cursorrules", ".windsurfrules"}, strings.ToLower(base(name)))
}

// instructions adds the page of a project's instructions.
func (b *builder) instructions(name string, text []byte) error {
	name = strings.ReplaceAll(name, `\`, "/")
	project := base(path.Dir(name))
	p := strings.TrimSuffix(strings.ToLower(base(name)), ".md")
	if project != "." && project != "/" {
		p = slug(project) + "-" + slug(p)
	} else {
		p = slug(p)
	}
	return b.page(name, "knowledge/instructions/"+p+".md", text)
}
