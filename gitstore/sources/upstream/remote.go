package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html/charset"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// address checks the address of a document, such as a feed, and returns it without the spaces
// around it.
func address(s string) (string, error) {
	s = strings.TrimSpace(s)
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "", fault.New(fault.Invalid, "Enter an address that begins with https://.").In("url")
	case u.User != nil:
		return "", fault.New(fault.Invalid, "The address must not contain a password.").In("url")
	}
	return s, nil
}

// document requests a document of at most limit bytes. The error is that of ctx, or a fault whose
// code says what the sync does next.
func document(ctx context.Context, env *Env, address string, limit int64) (*answer, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "Enter an address that begins with https://.").In("url")
	}
	c := newWebClient(&web{wait: pause, timeout: webTimeout}, env)
	c.limit = limit
	a, err := c.get(ctx, u, nil, func(*url.URL) error { return nil })
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, errTooLarge):
		return nil, fault.Wrap(err, fault.TooLarge, "The document at %s has more than %d MB, which is the limit.", u, limit>>20)
	case isOutside(err):
		out, _ := errors.AsType[*outsideError](err)
		return nil, fault.Wrap(err, fault.Invalid, "%s leads to %s. Enter the new address.", u, out.to).In("url")
	case errors.Is(err, errFailed):
		return nil, fault.Wrap(err, fault.Unavailable, "The site %s does not answer.", u.Host)
	default:
		return nil, err
	}
	switch a.status {
	case http.StatusOK:
		return a, nil
	case http.StatusNotFound, http.StatusGone:
		return nil, fault.New(fault.NotFound, "There is no document at %s. Check the address.", u)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		return nil, fault.New(fault.Forbidden, "The site %s refuses this server. Ask its operator, or choose another address.", u.Host)
	}
	return nil, fault.New(fault.Unavailable, "The site %s answers with status %d.", u.Host, a.status)
}

// documentState returns the state of a source that is one document.
func documentState(ctx context.Context, env *Env, address string, limit int64) (State, error) {
	a, err := document(ctx, env, address, limit)
	if err != nil {
		return "", err
	}
	return stateOf(a), nil
}

func stateOf(a *answer) State { return State(shortHash(a.content)) }

// oldFiles returns the files of the last complete sync by URL, and their paths in lower case.
func oldFiles(sink Sink) (files map[string]File, taken map[string]bool) {
	files, taken = map[string]File{}, map[string]bool{}
	for f := range sink.Files() {
		files[f.URL], taken[strings.ToLower(string(f.Path))] = f, true
	}
	return files, taken
}

// dateText returns a time for front matter, or "" for an unknown time.
func dateText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// shallow refuses an XML document whose elements are nested more than max levels deep. It protects
// parsers that call themselves for each level. count is how many elements have one of the names.
func shallow(content []byte, max int, names ...string) (count int, err error) {
	d := xml.NewDecoder(bytes.NewReader(content))
	d.Strict, d.CharsetReader = false, charset.NewReaderLabel
	for depth := 0; ; {
		t, err := d.Token()
		switch t := t.(type) {
		case xml.StartElement:
			depth++
			if slices.Contains(names, strings.ToLower(t.Name.Local)) {
				count++
			}
		case xml.EndElement:
			depth--
		}
		switch {
		case err == io.EOF:
			return count, nil
		case err != nil:
			return count, err
		case depth > max:
			return count, errors.New("the document is nested too deeply")
		}
	}
}

// count checks a setting that limits a count, and sets its default.
func count(n *int, setting string, standard, max int) error {
	if *n = cmp.Or(*n, standard); *n < 1 || *n > max {
		return fault.New(fault.Invalid, "The setting %s must be a number between 1 and %d.", setting, max).In(setting)
	}
	return nil
}

// freePath returns the path for a new file called name, and adds the path to taken, which holds the
// paths of all files in lower case. If another file has the path, a hash of the URL follows the
// name. If the name is not valid, "page-" and the hash replace its last part.
func freePath(taken map[string]bool, name, extension, url string) space.Path {
	p, err := space.ParsePath(name + extension)
	if err != nil || taken[strings.ToLower(string(p))] {
		p = space.Path(path.Join(path.Dir(name), "page-"+shortHash([]byte(url))+extension))
		if err == nil {
			p = space.Path(name + "-" + shortHash([]byte(url)) + extension)
		}
	}
	taken[strings.ToLower(string(p))] = true
	return p
}

// give puts a file into the sink. It keeps the previous file if the content and the path have not
// changed, and skips a file that is too large.
func give(ctx context.Context, env *Env, sink Sink, f File, content []byte) error {
	f.Tag = shortHash(content)
	if known, ok := sink.Known(f.URL); ok && known.Tag == f.Tag && known.Path == f.Path {
		return sink.Keep(ctx, f)
	}
	if int64(len(content)) > env.MaxFileBytes {
		return sink.Skip(ctx, f.URL, TooLarge)
	}
	return sink.Put(ctx, f, content)
}

// frontMatter returns a block of front matter with the fields that have a value. A field is a
// name and its value.
func frontMatter(fields ...[2]string) []byte {
	var out bytes.Buffer
	out.WriteString("---\n")
	for _, f := range fields {
		if f[1] != "" {
			frontMatterLine(&out, f[0], f[1])
		}
	}
	out.WriteString("---\n\n")
	return out.Bytes()
}

// frontMatterLine writes a field of front matter. It quotes the value as JSON, which is YAML too.
func frontMatterLine(out *bytes.Buffer, name, value string) {
	out.WriteString(name + ": " + quoteJSON(value) + "\n")
}

// quoteJSON returns the JSON text of a string.
func quoteJSON(s string) string {
	var quoted strings.Builder
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // Encode does not fail for a string
		panic(err)
	}
	return strings.TrimSuffix(quoted.String(), "\n")
}
