package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadEvents(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []string
	}{
		"one event":                {"data: {\"jsonrpc\":\"2.0\"}\n\n", []string{`{"jsonrpc":"2.0"}`}},
		"without a space":          {"data:{\"jsonrpc\":\"2.0\"}\n\n", []string{`{"jsonrpc":"2.0"}`}},
		"other ends of lines":      {"event: x\r\ndata: {\"jsonrpc\":\"2.0\"}\r\n\r\n", []string{`{"jsonrpc":"2.0"}`}},
		"several data lines":       {"data: {\"jsonrpc\":\ndata: \"2.0\"}\n\n", []string{`{"jsonrpc":"2.0"}`}},
		"comments and other names": {": hi\nid: 4\nretry: 5\ndata: {\"jsonrpc\":\"2.0\"}\n\n", []string{`{"jsonrpc":"2.0"}`}},
		"an unfinished event":      {"data: {\"jsonrpc\":\"2.0\"}\n", nil},
		"an event of another kind": {"data: hello\n\ndata: {}\n\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			if err := readEvents(iotest.OneByteReader(strings.NewReader(c.stream)), 1000, func(b []byte) { got = append(got, string(b)) }); err != nil {
				t.Fatal(err)
			}
			if strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("got %q", got)
			}
		})
	}
}

func FuzzReadEvents(f *testing.F) {
	f.Add([]byte("data: {\"jsonrpc\":\"2.0\"}\n\n: c\r\ndata: [1,\ndata: 2]\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		const most = 200
		err := readEvents(bytes.NewReader(stream), most, func(b []byte) {
			if !json.Valid(b) || bytes.ContainsAny(b, "\n\r") || len(b) > most {
				t.Errorf("emitted %q", b)
			}
		})
		if err != nil && !errors.Is(err, errTooLong) {
			t.Errorf("%v", err)
		}
	})
}

func FuzzWithID(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"error":{}}`), []byte(`7`))
	f.Add([]byte("[{\"a\":\n1}]"), []byte(`"x"`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":3,"result":{}}`), []byte(``))
	f.Fuzz(func(t *testing.T, body, id []byte) {
		if len(id) > 0 && !json.Valid(id) {
			return // ids are parts of valid messages
		}
		line := withID(body, id)
		if line == nil {
			return
		}
		if !json.Valid(body) || !json.Valid(line) || bytes.ContainsAny(line, "\n\r") {
			t.Errorf("%q of %q", line, body)
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\n  bb \r\ncccccccccccccccccccccccccccc\nd"))
	f.Fuzz(func(t *testing.T, text []byte) {
		const most = 20
		l := lineReader{bufio.NewReaderSize(bytes.NewReader(text), 16), most}
		var want []string
		for _, s := range strings.Split(string(text), "\n") {
			if trimmed := string(bytes.TrimSpace([]byte(s))); trimmed != "" || len(s) > most {
				want = append(want, trimmed)
			}
		}
		for i := 0; ; i++ {
			got, err := l.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				if i < len(want) {
					t.Fatalf("line %q is missing", want[i])
				}
				return
			}
			switch {
			case got == nil:
				if i < len(want) && len(want[i]) <= most && !strings.Contains(string(text), " ") && !bytes.ContainsAny(text, "\t\v\f\r\u0085\u00a0") {
					t.Fatalf("line %q counts as long", want[i])
				}
			case i >= len(want) || string(got) != want[i] || len(got) > most+1:
				t.Fatalf("line %d is %q of %q", i, got, want)
			}
		}
	})
}
