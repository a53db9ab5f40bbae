package mcp

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	protocol "github.com/mark3labs/mcp-go/mcp"

	"satchel/auth"
)

// settleEra finds the era of the message and checks the rules of that era's transport.
func (rq *request) settleEra() *rpcError {
	header, ok := versionHeader(rq.http.Header)
	if !ok {
		return errorf(protocol.HEADER_MISMATCH, "The MCP-Protocol-Version header names more than one version.")
	}
	declared, _, ok := rq.m.meta.text(protocol.MetaKeyProtocolVersion)
	if !ok {
		return errorf(protocol.INVALID_PARAMS, "The _meta member %s must be a string.", protocol.MetaKeyProtocolVersion)
	}
	rq.version = header
	rq.modern = protocol.IsModernProtocol(declared) || protocol.IsModernProtocol(header) && protocol.IsValidProtocolVersion(header)
	if !rq.modern {
		if header != "" && !protocol.IsValidProtocolVersion(header) && rq.m.method != string(protocol.MethodInitialize) {
			return unsupported(header)
		}
		return nil
	}
	rq.client = readClient(rq.m.meta[protocol.MetaKeyClientInfo])
	switch {
	case header == "":
		return errorf(protocol.HEADER_MISMATCH, "The MCP-Protocol-Version header is missing.")
	case declared == "" && (rq.m.id == nil || rq.m.method == ""):
		return nil // notifications and responses need not name their version
	case declared == "":
		return errorf(protocol.INVALID_PARAMS, "The _meta member %s is missing.", protocol.MetaKeyProtocolVersion)
	case header != declared && rq.staleHeader(header):
		rq.version = declared
	case header != declared:
		return errorf(protocol.HEADER_MISMATCH, "The MCP-Protocol-Version header and the _meta member %s differ.", protocol.MetaKeyProtocolVersion)
	}
	if !protocol.IsValidProtocolVersion(declared) {
		return unsupported(declared)
	}
	if rq.m.id == nil || rq.m.method == "" {
		return nil
	}
	if _, err := readObject(rq.m.meta[protocol.MetaKeyClientCapabilities], nil); err != nil {
		return errorf(protocol.INVALID_PARAMS, "The _meta member %s must be an object.", protocol.MetaKeyClientCapabilities)
	}
	return rq.checkHeaders()
}

// checkHeaders checks that Mcp-Method and Mcp-Name agree with the body.
func (rq *request) checkHeaders() *rpcError {
	params, err := json.Marshal(map[string]json.RawMessage{"name": rq.m.params["name"], "uri": rq.m.params["uri"]})
	if err != nil {
		return errorf(protocol.INVALID_PARAMS, "The params are not valid.")
	}
	err = protocol.ValidateStandardHeaders(rq.http.Header.Get, rq.version, protocol.MCPMethod(rq.m.method), params)
	var mismatch protocol.HeaderMismatchError
	switch {
	case errors.As(err, &mismatch):
		return errorf(protocol.HEADER_MISMATCH, "The header %s is missing or does not match the body.", mismatch.Header)
	case err != nil:
		return errorf(protocol.HEADER_MISMATCH, "The headers of the request do not match its body.")
	}
	return nil
}

// staleHeader reports whether the request is from a Claude client and has the header of an
// older version. Some Claude clients speak 2026-07-28 with such a header
// (anthropics/claude-code#93290).
func (rq *request) staleHeader(header string) bool {
	if rq.s.o.StrictVersionHeader || !protocol.IsValidProtocolVersion(header) || protocol.IsModernProtocol(header) {
		return false
	}
	return strings.Contains(strings.ToLower(rq.client.Name), "claude") || strings.Contains(strings.ToLower(rq.http.UserAgent()), "claude")
}

// versionHeader returns the version in the header. Some clients send the same version
// twice, which is allowed. ok is false if the versions differ.
func versionHeader(h http.Header) (version string, ok bool) {
	for _, value := range h.Values(protocol.HeaderProtocolVersion) {
		for part := range strings.SplitSeq(value, ",") {
			part = strings.TrimSpace(part)
			if version != "" && part != version {
				return "", false
			}
			version = part
		}
	}
	return version, true
}

func unsupported(version string) *rpcError {
	e := errorf(protocol.UNSUPPORTED_PROTOCOL_VERSION, "The protocol version %q is not supported.", shorten(version))
	e.Data = protocol.UnsupportedProtocolVersionData{Supported: protocol.ValidProtocolVersions, Requested: shorten(version)}
	return e
}

// readClient reads a client's description of itself. No right depends on it, so an unreadable
// description is not an error.
func readClient(raw json.RawMessage) clientInfo {
	var c clientInfo
	if len(raw) > 0 && json.Unmarshal(raw, &c) != nil {
		return clientInfo{}
	}
	return clientInfo{strings.Clone(shorten(c.Name)), strings.Clone(shorten(c.Version))} // copies, because sessions keep them
}

// bindSession finds the session of a legacy message. A session of another user or grant is
// treated as unknown.
func (rq *request) bindSession() *rpcError {
	if rq.m.method == string(protocol.MethodInitialize) {
		rq.client = readClient(rq.m.params["clientInfo"])
		return nil
	}
	var e *rpcError
	rq.session, e = rq.s.sessionOf(rq.http, rq.p)
	if rq.session != nil {
		rq.client = rq.session.client
	}
	return e
}

// sessionOf returns the session in the request's header.
func (s *Server) sessionOf(r *http.Request, p auth.Principal) (*session, *rpcError) {
	ids := r.Header.Values(protocol.HeaderSessionID)
	if len(ids) != 1 || ids[0] == "" {
		return nil, errorf(protocol.INVALID_REQUEST, "The Mcp-Session-Id header is missing. Send initialize first.").withStatus(http.StatusBadRequest)
	}
	found, ok := s.sessions.get(p, ids[0])
	if !ok {
		return nil, errorf(protocol.INVALID_REQUEST, "There is no such session. Send initialize again.").withStatus(http.StatusNotFound)
	}
	return found, nil
}

// checkParams checks the types of the params for which mcp-go would return a code that no
// specification defines.
func (rq *request) checkParams() *rpcError {
	bad := func(what string) *rpcError { return errorf(protocol.INVALID_PARAMS, "%s", what) }
	switch rq.m.method {
	case string(protocol.MethodInitialize):
		if rq.modern {
			return rq.unknownMethod() // this era has neither a handshake nor sessions
		}
		version, present, ok := rq.m.params.text("protocolVersion")
		if !ok || !present {
			return bad("initialize needs a protocolVersion.")
		}
		for _, name := range []string{"capabilities", "clientInfo"} {
			if _, err := readObject(rq.m.params[name], nil); err != nil {
				return bad("initialize needs " + name + ", an object.")
			}
		}
		rq.version = protocol.NegotiateLegacyVersion(version)
	case string(protocol.MethodToolsList), string(protocol.MethodPromptsList), string(protocol.MethodResourcesList),
		string(protocol.MethodResourcesTemplatesList), methodSkillsList:
		cursor, _, ok := rq.m.params.text("cursor")
		if !ok || cursor != "" && rq.s.fixtures == nil {
			return bad("There is no such cursor: this server's lists have one page.")
		}
	}
	return nil
}

// isProtocolMethod reports whether mcp-go may know the method. Metrics have one common name
// for all methods that neither mcp-go nor this package knows.
func isProtocolMethod(name string) bool {
	return slices.Contains([]string{"initialize", "ping", "server/discover", "tools/list", "prompts/list", "resources/list",
		"resources/templates/list", "logging/setLevel", "completion/complete"}, name)
}
