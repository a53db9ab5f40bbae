package server

import (
	"net/url"
	"strings"
)

// script is what one client sends, in its order and with its peculiarities.
type script struct {
	name string
	// document is the client's id, where it has a metadata document; else register
	// is what it registers itself with.
	document, register string
	redirect           string
	// discover is set where the first request is of the stateless era.
	discover bool
	// wellKnown is where it looks for the resource's metadata: "" for where the
	// challenge says.
	wellKnown string
	// servers are where it looks for the authorization server's metadata before
	// the usual place; nothing is there, and it must be told so.
	servers []string
	scope   string     // "": what the challenge names
	extra   url.Values // parameters of the authorization request besides
	// noResourceInToken: the token requests do not repeat the resource.
	noResourceInToken bool
	// origin is of the page in which the client runs, for one that is a page.
	origin string
	// refreshes are sent at once.
	refreshes int
	// hosted: it reaches public addresses alone.
	hosted bool
}

func scripts() []script {
	const (
		claude     = "https://claude.ai/oauth/mcp-oauth-client-metadata"
		claudeCode = "https://claude.ai/oauth/claude-code-client-metadata"
		chatGPT    = "https://chatgpt.com/oauth/client.json"
		vsCode     = "https://vscode.dev/oauth/client-metadata.json"
		openID     = "/.well-known/openid-configuration"
	)
	chatGPTApp := func(name, redirect string) script {
		return script{name: name, document: "https://chatgpt.com/oauth/Wx7_k2-Qp/client.json", redirect: redirect, hosted: true}
	}
	cursor := func(redirect string) script {
		return script{name: "Cursor to " + redirect[:strings.Index(redirect, ":")+3], redirect: redirect,
			register: `{"client_name":"Cursor","redirect_uris":["http://localhost:8787/callback","https://www.cursor.com/agents/mcp/oauth/callback","cursor://anysphere.cursor-mcp/oauth/callback"],
				"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","application_type":"native"}`}
	}
	vsCodeRegisters := func(name, redirect string) script {
		return script{name: name, redirect: redirect, noResourceInToken: true,
			register: `{"client_name":"Visual Studio Code","client_uri":"https://code.visualstudio.com","grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"],
				"response_types":["code"],"redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect","http://127.0.0.1/","http://127.0.0.1:33418/"],"scope":"read write","token_endpoint_auth_method":"none","application_type":"native"}`}
	}
	return []script{
		{name: "Claude web", document: claude, redirect: "https://claude.ai/api/mcp/auth_callback", discover: true, hosted: true, refreshes: 5},
		{name: "Claude Code on localhost", document: claudeCode, redirect: "http://localhost:51712/callback", refreshes: 3},
		{name: "Claude Code on 127.0.0.1", document: claudeCode, redirect: "http://127.0.0.1:3118/callback", wellKnown: "/.well-known/oauth-protected-resource/mcp"},
		{name: "ChatGPT", document: chatGPT, redirect: "https://chatgpt.com/connector_platform_oauth_redirect", hosted: true,
			scope: "read write openid email profile", extra: url.Values{"id_token_hint": {"x.y.z"}}, servers: []string{openID}, refreshes: 2},
		chatGPTApp("ChatGPT with a document of the app", "https://chatgpt.com/connector_platform_oauth_redirect"),
		chatGPTApp("ChatGPT with a document and an address of the app", "https://chatgpt.com/connector/oauth/Wx7_k2-Qp"),
		cursor("cursor://anysphere.cursor-mcp/oauth/callback"), cursor("http://localhost:8787/callback"), cursor("https://www.cursor.com/agents/mcp/oauth/callback"),
		vsCodeRegisters("VS Code that registers", "http://127.0.0.1:33418/"),
		vsCodeRegisters("VS Code whose port is taken", "http://127.0.0.1:54321/"),
		{name: "VS Code with its document", document: vsCode, redirect: "http://127.0.0.1:49876/", scope: "read write offline_access"},
		{name: "VS Code in a browser", document: vsCode, redirect: "https://vscode.dev/redirect", hosted: true},
		{name: "mcp-remote", redirect: "http://localhost:3335/oauth/callback", wellKnown: "/.well-known/oauth-protected-resource", refreshes: 5,
			register: `{"redirect_uris":["http://localhost:3335/oauth/callback"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"],
				"client_name":"MCP CLI Proxy","client_uri":"https://github.com/punkpeye/mcp-remote","software_id":"2e6dc280-f3c3-4e01-99a7-8181dbd1d23d","software_version":"0.15.1","scope":"read write"}`},
		{name: "Inspector's command line", redirect: "http://127.0.0.1:6276/oauth/callback", discover: true,
			register: `{"redirect_uris":["http://127.0.0.1:6276/oauth/callback"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"client_name":"MCP Inspector","client_uri":"https://github.com/modelcontextprotocol/inspector"}`},
		{name: "Inspector's page", redirect: "http://localhost:6274/oauth/callback", origin: "http://localhost:6274",
			register: `{"redirect_uris":["http://localhost:6274/oauth/callback"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"client_name":"MCP Inspector"}`},
	}
}
