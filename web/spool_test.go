package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
)

func TestAttackUploadsThatNeverEnd(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	send := func(body io.Reader) int {
		r := httptest.NewRequest(http.MethodPost, issuer+"/spaces/"+string(w.space.ID)+"/upload", body)
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		r.Header.Set("Origin", issuer)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		for k, v := range b.cookies {
			r.AddCookie(&http.Cookie{Name: k, Value: v})
		}
		rec := httptest.NewRecorder()
		w.server.Handler().ServeHTTP(rec, r)
		return rec.Code
	}
	var open sync.WaitGroup
	var ends []func()
	for range 3 {
		read, write := io.Pipe()
		open.Go(func() { send(read) })
		if _, err := write.Write([]byte("--x\r\n")); err != nil { // returns once it is read
			t.Fatal(err)
		}
		ends = append(ends, func() { _ = write.CloseWithError(io.ErrUnexpectedEOF) })
	}
	unknown := func() io.Reader { return io.MultiReader() } // as is its length
	if got := send(unknown()); got != http.StatusTooManyRequests {
		t.Errorf("a fourth upload: %d, want %d", got, http.StatusTooManyRequests)
	}
	if got := w.as(w.ada).get("/spaces/" + string(w.space.ID)).StatusCode; got != http.StatusOK {
		t.Errorf("a page meanwhile: %d", got)
	}
	for i := range 12 {
		a := b.send("/spaces/"+string(w.space.ID)+"/new", url.Values{"path": {""}, "text": {fmt.Sprint("a few words ", i)}, "mode": {"regular"}})
		if a.StatusCode == http.StatusTooManyRequests {
			t.Fatalf("a small text meanwhile: %d %s", a.StatusCode, a.body)
		}
	}
	for _, end := range ends {
		end()
	}
	open.Wait()
	if got := send(unknown()); got == http.StatusTooManyRequests {
		t.Error("an upload is still refused after the others have ended")
	}
}
