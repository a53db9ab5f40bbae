package admin

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"satchel/internal/service"
)

func told(e service.AuditEntry) string {
	var b strings.Builder
	for _, p := range (event{e, func(m string) string { return "a " + m }}).sentence() {
		b.WriteString(p.Text)
	}
	return b.String()
}

func TestSentences(t *testing.T) {
	type detail = map[string]any
	names := map[string]string{"u_a": "ada", "u_b": "bob", "s_1": "ada/home", "s_2": "bob/team"}
	for _, tt := range []struct {
		who, via, action, subject, about string
		detail                           detail
		want                             string
	}{
		{"ada", "web", "session.start", "ss_1", "ada", detail{"user": "u_a", "method": "passkey"}, "ada signed in with a passkey"},
		{"bob", "web", "session.end", "ss_1", "bob", detail{"user": "u_b"}, "bob signed out"},
		{"ada", "web", "session.end", "ss_1", "bob", detail{"user": "u_b"}, "ada ended a session of bob"},
		{"", "command line", "link.create", "u_b", "bob", nil, "The operator made a sign-in link for bob"},
		{"bob", "mail", "link.create", "u_b", "bob", nil, "bob asked for a sign-in link by mail"},
		{"", "invitation", "user.create", "u_b", "bob", detail{"admin": false}, "bob joined this server with an invite"},
		{"", "first run", "user.create", "u_b", "bob", detail{"admin": true}, "bob joined this server"},
		{"ada", "web", "user.create", "u_b", "bob", detail{"admin": true}, "ada added bob as an admin"},
		{"", "configuration", "user.suspend", "u_b", "bob", detail{"name": "bob"}, "The server suspended bob, who is no longer on the allow list"},
		{"ada", "web", "invitation.create", "iv_1", "iv_1", detail{"space": "s_1", "role": "editor"}, "ada invited a person to home as an editor"},
		{"ada", "web", "invitation.create", "iv_1", "grace", detail{"space": "s_2", "role": "reader", "admin": true}, "ada invited grace to bob/team as a reader and as an admin"},
		{"bob", "web", "member.set", "s_1", "ada/home", detail{"user": "u_b", "role": "reader"}, "bob joined ada/home as a reader"},
		{"ada", "web", "member.set", "s_1", "ada/home", detail{"user": "u_b", "role": "reader", "was": "editor"}, "ada changed the role of bob in home to reader"},
		{"ada", "web", "member.remove", "s_1", "ada/home", detail{"user": "u_b"}, "ada removed bob from home"},
		{"bob", "client", "grant.create", "g_1", "Claude", detail{"name": "Claude", "space": "s_1"}, "Claude connected to ada/home for bob"},
		{"bob", "client", "refresh.reuse", "g_1", "g_1", nil, "A client without a name of bob was disconnected, because its refresh token was used twice"},
		{"ada", "web", "space.import", "s_1", "ada/home", detail{"files": 3.0, "from": "https://git.test/x"}, "ada imported 3 files into home from https://git.test/x"},
		{"ada", "web", "settings.set", "members_invite", "members_invite", detail{"value": ""}, "ada changed who can invite new people: as satchel.yaml says"},
		{"", "github", "github.state", "s_1", "ada/home", detail{"name": "ada-l/notes", "to": "removed"}, "GitHub reported that the repository ada-l/notes of ada/home is now removed"},
		{"", "command line", "key.create", "g_1", "g_1", detail{"user": "u_b", "space": "s_2"}, "The operator created a key of bob for the space team"},
		{"ada", "web", "key.create", "g_1", "backup", detail{"user": "u_a", "name": "backup", "space": "s_1"}, "ada created the key backup for the space home"},
		{"", "command line", "space.create", "s_2", "bob/team", detail{"owner": "u_b"}, "The operator created the space team of bob"},
		{"ada", "web", "new.thing", "x_1", "home", nil, "ada: new thing home"},
	} {
		e := service.AuditEntry{User: tt.who, Via: tt.via, Action: tt.action, Subject: tt.subject, About: tt.about, Detail: tt.detail, Names: names}
		if got := told(e); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.action, got, tt.want)
		}
	}
}

// Names are marked as such, and invisible characters in them are left out.
func TestNamesInSentences(t *testing.T) {
	got := event{service.AuditEntry{User: "ada", Action: "space.create", Subject: "s_1", About: "ada/a\u202eb"}, nil}.sentence()
	want := []phrase{{"ada", true}, {" created the space ", false}, {"ab", true}}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%v", got)
	}
}

// Each action that the server records has a sentence.
func TestEachActionHasASentence(t *testing.T) {
	recorded := regexp.MustCompile(`"((?:session|link|identity|passkey|user|invitation|member|grant|key|code|refresh|client|settings|space|review|source|github)(?:\.[a-z]+)+)"`)
	found := 0
	for _, dir := range []string{"../../auth/store", "../../internal/service"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range recorded.FindAllSubmatch(text, -1) {
				found++
				if len(sentences()[string(m[1])]) == 0 {
					t.Errorf("%s: %s has no sentence", f, m[1])
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d actions were found", found)
	}
}
