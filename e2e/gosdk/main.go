// Command gosdk is an MCP client for the end-to-end tests, built with the Go SDK.
// It connects to a server that requires OAuth, and calls a tool until the access
// token has been refreshed. It prints one JSON object per line: first the URL that
// the person must open, then the results.
//
//	gosdk -url http://localhost:8080/mcp -as document|registered|preset [-client ID]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gosdk:", err)
		os.Exit(1)
	}
}

func run() error {
	endpoint := flag.String("url", "", "the server's MCP endpoint")
	as := flag.String("as", "registered", "how the server knows this client: document, registered or preset")
	id := flag.String("client", "", "the client's id, or its document's URL")
	tool := flag.String("tool", "instructions", "the tool to call, without arguments")
	callback := flag.String("callback", "127.0.0.1:0", "where the redirect is awaited")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	back, err := await(*callback)
	if err != nil {
		return err
	}
	defer back.server.Close()

	refreshes := &refreshCounter{next: http.DefaultTransport}
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:              back.url,
		AuthorizationCodeFetcher: back.fetch,
		RequestRefreshToken:      true,
		Client:                   &http.Client{Transport: refreshes},
	}
	switch *as {
	case "document":
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: *id}
	case "preset":
		config.PreregisteredClient = &oauthex.ClientCredentials{ClientID: *id}
	case "registered":
		config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName:              "Go SDK",
			RedirectURIs:            []string{back.url},
			GrantTypes:              []string{"authorization_code", "refresh_token"},
			TokenEndpointAuthMethod: "none",
		}}
	default:
		return fmt.Errorf("-as %q: want document, registered or preset", *as)
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return err
	}

	client := mcp.NewClient(&mcp.Implementation{Name: "e2e-gosdk", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: *endpoint, OAuthHandler: handler}, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer session.Close()
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("list tools: %w", err)
	}
	names := make([]string, 0, len(list.Tools))
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	tell(map[string]any{"tools": names})

	for call := 1; call == 1 || refreshes.n.Load() == 0; call++ {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: *tool, Arguments: map[string]any{}})
		if err != nil {
			return fmt.Errorf("call %d: %w", call, err)
		}
		if result.IsError {
			return fmt.Errorf("call %d: the tool failed: %+v", call, result.Content)
		}
		if call == 1 {
			text, err := json.Marshal(result.Content)
			if err != nil {
				return err
			}
			tell(map[string]any{"called": *tool, "content": json.RawMessage(text)})
		}
	}
	tell(map[string]any{"refreshes": refreshes.n.Load()})
	return nil
}

func tell(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(b))
}

// callback is the loopback listener that the browser is sent back to.
type callback struct {
	url    string
	got    chan *auth.AuthorizationResult
	failed chan error
	server *http.Server
}

func await(address string) (*callback, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	c := &callback{
		url: fmt.Sprintf("http://%s/callback", l.Addr()),
		got: make(chan *auth.AuthorizationResult, 1), failed: make(chan error, 1),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if e := q.Get("error"); e != "" {
			c.failed <- fmt.Errorf("the server refused: %s: %s", e, q.Get("error_description"))
		} else {
			c.got <- &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}
		}
		fmt.Fprintln(w, "You may close this page.")
	})
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := c.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			c.failed <- err
		}
	}()
	return c, nil
}

func (c *callback) fetch(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	tell(map[string]any{"authorize": a.URL})
	select {
	case r := <-c.got:
		return r, nil
	case err := <-c.failed:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refreshCounter counts the refreshes that were answered with success.
type refreshCounter struct {
	next http.RoundTripper
	n    atomic.Int64
}

func (c *refreshCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	refresh := false
	if r.Method == http.MethodPost && r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		refresh = strings.Contains(string(body), "grant_type=refresh_token")
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(strings.NewReader(string(body)))
	}
	res, err := c.next.RoundTrip(r)
	if err == nil && refresh && res.StatusCode == http.StatusOK {
		c.n.Add(1)
	}
	return res, err
}
