package secretscan

import "bytes"

const (
	minKeyDigits = 64 // base64 digits of the shortest private key (an Ed25519 one has 64)
	minKeyLine   = 16 // the least number of digits on a line of a key, except the last line
	maxKeyLabels = 8  // the most lines before the digits, such as Proc-Type: and Comment:
)

var (
	keyEnd  = []byte("-----END")
	keyDash = []byte("-----")
)

// privateKey returns the end of the private key in PEM whose first line begins the content,
// or 0 if only a placeholder follows. Line ends (also escaped as in JSON or a shell
// string), indentation, quotes and comment signs may separate the digits. Nothing else may,
// because in documentation prose follows such a first line. A key without its last line
// counts too.
func privateKey(content []byte) int {
	i := len("-----BEGIN")
	i += bytes.Index(content[i:], keyDash) + len(keyDash) // the rule's expression matched the dashes
	var counts [256]int
	digits, labels, end := 0, 0, 0
scan:
	for i < len(content) {
		switch c := content[i]; {
		case c == '\\' && i+1 < len(content) && bytes.IndexByte([]byte("nrt"), content[i+1]) >= 0:
			i += 2
		case isBase64(c):
			j := i
			for j < len(content) && isBase64(content[j]) {
				j++
			}
			run := content[i:j]
			switch {
			case len(bytes.Trim(run, "+/")) == 0 && len(run) < minKeyLine: // part of a program around the key
				i = j
				continue
			case digits == 0 && labels < maxKeyLabels && isLabel(content[i:]):
				labels++
				i = lineEnd(content, i)
				continue
			case len(run) < minKeyLine && (digits == 0 || !isLastLine(content[j:])):
				break scan
			}
			for _, c := range run {
				counts[c]++
			}
			digits += len(run)
			i, end = j, j
		case c == '=' && digits > 0:
			i++
			end = i
		case bytes.IndexByte([]byte(" \t\r\n\"'`,;#*>|\\"), c) >= 0:
			i++
		case bytes.HasPrefix(content[i:], keyEnd) && digits > 0:
			rest := content[i+len(keyEnd):]
			if k := bytes.Index(rest[:min(len(rest), 80)], keyDash); k >= 0 {
				end = i + len(keyEnd) + k + len(keyDash)
			}
			break scan
		default:
			break scan
		}
	}
	if digits < minKeyDigits || entropyOf(counts[:]) < 4 {
		return 0
	}
	return end
}

// isLabel reports whether content begins with a label such as "Proc-Type: 4".
func isLabel(content []byte) bool {
	for i, c := range content[:min(len(content), 32)] {
		if c == ':' {
			return i > 0
		}
		if c != '-' && (c < 'A' || c > 'Z' && c < 'a' || c > 'z') {
			return false
		}
	}
	return false
}

// lineEnd returns the end of the line at i: the position of a line end or of an escaped
// line end, or at most 256 bytes after i.
func lineEnd(content []byte, i int) int {
	for stop := min(i+256, len(content)); i < stop && content[i] != '\n'; i++ {
		if content[i] == '\\' && i+1 < len(content) && content[i+1] == 'n' {
			break
		}
	}
	return i
}

// isLastLine reports whether the text after a short run of digits ends a key.
func isLastLine(after []byte) bool {
	for i := 0; i < len(after); i++ {
		switch c := after[i]; {
		case c == '=' || c == '-':
			return c == '=' || bytes.HasPrefix(after[i:], keyEnd)
		case c == '\\' && i+1 < len(after) && bytes.IndexByte([]byte("nrt"), after[i+1]) >= 0:
			i++
		case bytes.IndexByte([]byte(" \t\r\n\"'`,;#*>|\\+"), c) < 0 || i > 200:
			return false
		}
	}
	return false
}
