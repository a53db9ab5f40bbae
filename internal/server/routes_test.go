package server

import (
	"net"
	"net/http"
	"testing"
)

// The attack: a page whose own name was pointed at this machine (DNS rebinding)
// reads what needs no key.
func TestMetricsAreReadUnderNoForeignName(t *testing.T) {
	cfg := settings(t)
	cfg.Server.AllowedHosts = []string{"metrics.example.com"}
	r := boot(t, cfg)
	_, port, _ := net.SplitHostPort(r.metrics.Addr().String())
	for host, want := range map[string]int{
		"attacker.example":           http.StatusForbidden,
		"attacker.example:" + port:   http.StatusForbidden,
		"localhost.attacker.example": http.StatusForbidden,
		"127.0.0.1.attacker.example": http.StatusForbidden,
		"127.0.0.1:" + port:          http.StatusOK,
		"[::1]:" + port:              http.StatusOK,
		"localhost:" + port:          http.StatusOK,
		"Metrics.Example.com":        http.StatusOK,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.metrics.Addr().String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("under %q: %d, want %d", host, res.StatusCode, want)
		}
	}
}

func TestAServerThatOthersReachSaysSo(t *testing.T) {
	for _, c := range []struct {
		listen, public string
		want           bool
	}{
		{"127.0.0.1:0", "", false},
		{"[::]:0", "", true},
		{"0.0.0.0:0", "https://satchel.example.com", false},
	} {
		cfg := settings(t)
		cfg.Server.Listen, cfg.Server.PublicURL = c.listen, c.public
		if got := boot(t, cfg).Exposed(); got != c.want {
			t.Errorf("%s, public URL %q: %v", c.listen, c.public, got)
		}
	}
}
