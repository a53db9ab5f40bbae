package web

import (
	"encoding/json"
	"net/http"
)

// manifest is the part of the web app manifest (W3C) that makes the pages installable, with the
// share target of the package share.
type manifest struct {
	ID         string         `json:"id"`
	Name       string         `json:"name"`
	ShortName  string         `json:"short_name"`
	StartURL   string         `json:"start_url"`
	Scope      string         `json:"scope"`
	Display    string         `json:"display"`
	Theme      string         `json:"theme_color"`
	Background string         `json:"background_color"`
	Icons      []manifestIcon `json:"icons"`
	Share      shareTarget    `json:"share_target"`
}

type manifestIcon struct {
	Src     string `json:"src"`
	Sizes   string `json:"sizes"`
	Type    string `json:"type"`
	Purpose string `json:"purpose"`
}

type shareTarget struct {
	Action string            `json:"action"`
	Method string            `json:"method"`
	Enc    string            `json:"enctype"`
	Params map[string]string `json:"params"`
}

// showManifest handles GET /manifest.webmanifest. The manifest is the same for everybody, because
// browsers fetch it without a session.
func (s *Site) showManifest(w http.ResponseWriter, r *http.Request) {
	s.secureHeaders(w, r)
	w.Header().Set("Content-Type", "application/manifest+json")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	const svg = "image/svg+xml"
	_ = json.NewEncoder(w).Encode(manifest{ // fails only if the browser is gone
		ID: "/", Name: "Satchel", ShortName: "Satchel", StartURL: "/", Scope: "/", Display: "standalone", Theme: "#0f766e", Background: "#fcfcfa",
		Icons: []manifestIcon{{s.assets["icon.svg"].url, "any", svg, "any"}, {s.assets["icon-maskable.svg"].url, "any", svg, "maskable"}},
		// A share button opens the page with the text. The person then presses Save, because the
		// request of another program has no token of the session's forms.
		Share: shareTarget{Action: "/share", Method: http.MethodGet, Enc: "application/x-www-form-urlencoded", Params: map[string]string{"title": "title", "text": "text", "url": "url"}},
	})
}
