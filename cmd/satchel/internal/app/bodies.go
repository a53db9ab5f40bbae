package app

import (
	"io"
	"net/http"
	"time"
)

// boundBodies gives the body of a request its time. Without, one address could
// hold every file descriptor of the server with bodies that never come: it would
// wait for them also before it sends an answer that was written without reading
// any, such as a refusal.
func boundBodies(next http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody {
			c := http.NewResponseController(w)
			if c.SetReadDeadline(time.Now().Add(within)) == nil {
				r.Body = &boundBody{r.Body, c}
			}
		}
		next.ServeHTTP(w, r)
	})
}

type boundBody struct {
	io.ReadCloser
	c *http.ResponseController
}

// Read implements io.Reader. Once the body has come, an answer may take its time.
func (b *boundBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.c.SetReadDeadline(time.Time{})
	}
	return n, err
}
