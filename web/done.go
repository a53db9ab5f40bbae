package web

import (
	"net/http"

	"satchel/auth"
	"satchel/internal/space"
)

// DoneIn is what a page says of the act that led to it: the words of the address's
// done, which come from the page itself, so that no link can have it say another
// thing. A page that says what is wrong says nothing of the kind.
func DoneIn(v *Visit, words map[string]string) string {
	if v.R.Method == http.MethodPost {
		return ""
	}
	return words[v.R.URL.Query().Get("done")]
}

// accountDone are the words of the account's pages.
func accountDone() map[string]string {
	return map[string]string{
		"disconnected": "The client is disconnected. What it did stays.",
		"revoked":      "The key is revoked.",
		"passkey":      "The passkey is added. Next time you sign in with it.",
		"removed":      "The passkey is removed.",
		"shown":        "A new key is shown once, and that was it. If you have not copied it, revoke it and make another.",
		"ended":        "The session is ended.",
	}
}

// githubDone are the words of a space's GitHub page as it stands: an address that
// was kept says nothing that is not so any more.
func githubDone(b githubPage) map[string]string {
	if b.Linked {
		if b.Link.State != auth.LinkConnected {
			return map[string]string{"checked": "GitHub was asked just now."}
		}
		return map[string]string{"checked": "GitHub was asked just now, and what is new there is being fetched."}
	}
	return map[string]string{"disconnected": "The repository is disconnected. Both it and the space stay as they are."}
}

// spaceDone are the words of a space's page.
func spaceDone() map[string]string {
	return map[string]string{
		"role":    "The role is changed.",
		"same":    "Nothing is changed: that was the role already.",
		"removed": "The member is removed.",
		"revoked": "The invitation is revoked.",
	}
}

// givenDone are the words of the page of a space that its visitor does not own.
func givenDone() map[string]string {
	return map[string]string{"given": "The space is given away. You are an " + string(space.Editor) + " of it now."}
}

// spacesDone are the words of the list of spaces.
func spacesDone() map[string]string {
	return map[string]string{"deleted": "The space is deleted. Nobody can reach it any more, and its files are being removed from this server."}
}
