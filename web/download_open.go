package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

const (
	// downloadGrace is how long the writes of a download may wait in total before the minimum
	// rate applies.
	downloadGrace = time.Minute
	// downloadChunk is the size of one write. It is small, so that a slow client still
	// finishes a write before the deadline.
	downloadChunk = 32 << 10
	// A page may show many pictures. So a person may load MaxDownloads times rawFiles raw files at
	// once. Further raw files wait up to rawWait.
	rawFiles = 4
	rawWait  = 10 * time.Second
)

// downloading is a download in progress.
type downloading struct {
	space   space.SpaceID
	user    space.UserID
	session string
	raw     bool
	end     context.CancelCauseFunc
}

func errDownloadRight() error {
	return fault.New(fault.Forbidden, "The download was stopped because you no longer have access to this space.")
}

func errDownloadStopping() error {
	return fault.New(fault.Unavailable, "The server is shutting down. Try again in a moment.")
}

func errDownloadSlow() error {
	return fault.New(fault.Limited, "The download was stopped because it was too slow.")
}

// download begins a download. The returned context is canceled when the person loses access.
// The caller must call leave. If there are too many downloads, download waits for another
// download to end, but at most the time wait.
func (l *Live) download(ctx context.Context, d *downloading, wait time.Duration) (_ context.Context, leave func(), err error) {
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		over, err := l.enterDownload(d, func() context.CancelCauseFunc {
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(ctx)
			return cancel
		})
		if err == nil {
			return ctx, func() { l.leaveDownload(d) }, nil
		}
		if wait <= 0 || over == nil {
			return ctx, nil, err
		}
		select {
		case <-over:
		case <-end.C:
			return ctx, nil, err
		case <-ctx.Done():
			return ctx, nil, ctx.Err()
		}
	}
}

// enterDownload adds a download if the limits allow it. It then calls begin, which returns the
// function that cancels the download. If the limits do not allow the download, freed is closed
// when another download ends. freed is nil if the server is shutting down.
func (l *Live) enterDownload(d *downloading, begin func() context.CancelCauseFunc) (freed <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Closed {
		return nil, errDownloadStopping()
	}
	own, most := 0, l.o.MaxDownloads
	if d.raw {
		most *= rawFiles
	}
	for o := range l.downloads {
		if o.user == d.user && o.raw == d.raw {
			own++
		}
	}
	var f *fault.Error
	switch {
	case own >= most:
		f = fault.New(fault.Limited, "You already have %d downloads in progress. Wait until one finishes, or cancel one.", own)
	case len(l.downloads) >= l.o.MaxAllDownloads:
		f = fault.New(fault.Unavailable, "Too many people are downloading right now. Try again in a few minutes.")
	default:
		d.end = begin()
		l.downloads[d] = true
		return nil, nil
	}
	f.RetryAfter = time.Minute
	return l.downloaded, f
}

func (l *Live) leaveDownload(d *downloading) {
	d.end(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.downloads, d)
	close(l.downloaded)
	l.downloaded = make(chan struct{})
}

// BeginDownload lets a visitor download from a space; the caller must call leave. Writes
// to w fail once the visitor loses access or reads too slowly.
func (s *Site) BeginDownload(v *Visit, id space.SpaceID, raw bool) (ctx context.Context, w http.ResponseWriter, leave func(), err error) {
	d := &downloading{space: id, user: v.User.ID, session: v.Session.ID, raw: raw}
	wait := time.Duration(0)
	if raw {
		wait = rawWait
	}
	ctx, left, err := s.Live.download(v.R.Context(), d, wait)
	if err != nil {
		return ctx, nil, nil, err
	}
	// The person may have lost access before the download was added.
	if !s.StillIn(ctx, v, id) {
		left()
		return ctx, nil, nil, ErrGone
	}
	out := &downloadWriter{ResponseWriter: v.W, rc: http.NewResponseController(v.W), ctx: ctx, o: s.Live.o, now: s.Now, checked: s.Now()}
	out.allowed = func() bool { return s.StillIn(ctx, v, id) }
	stop := context.AfterFunc(ctx, out.cut)
	return ctx, out, func() {
		out.close()
		stop()
		left()
	}, nil
}

// downloadWriter writes a download as long as the visitor has access.
type downloadWriter struct {
	http.ResponseWriter
	rc      *http.ResponseController
	ctx     context.Context
	o       LiveOptions
	now     func() time.Time
	allowed func() bool // reports whether the visitor still has access
	checked time.Time   // when allowed was last called
	sent    int64
	waited  time.Duration // how long writes waited for the visitor to read

	mu     sync.Mutex
	closed bool // the connection belongs to the server again
}

// cut ends a blocked write.
func (w *downloadWriter) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		_ = w.rc.SetWriteDeadline(time.Unix(1, 0)) // not every connection supports deadlines
	}
}

// close returns the connection to the server, which may use it for more requests.
func (w *downloadWriter) close() {
	if w.sent > 0 && w.extendDeadline() == nil {
		_ = w.rc.Flush() // not every connection can flush
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.ctx.Err() == nil {
		_ = w.rc.SetWriteDeadline(time.Time{})
	}
}

// extendDeadline sets the deadline of the next write.
func (w *downloadWriter) extendDeadline() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.o.DownloadStall))
	return nil
}

// Write implements io.Writer. downloadWriter hides the ReadFrom of the connection, which would
// skip the checks of Write.
func (w *downloadWriter) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if now := w.now(); now.Sub(w.checked) >= w.o.Heartbeat {
			if w.checked = now; !w.allowed() {
				return n, errDownloadRight()
			}
		}
		if err := w.extendDeadline(); err != nil {
			return n, err
		}
		began := w.now()
		m, err := w.ResponseWriter.Write(p[n:min(n+downloadChunk, len(p))])
		n += m
		w.sent += int64(m)
		w.waited += w.now().Sub(began)
		switch {
		case w.ctx.Err() != nil:
			return n, context.Cause(w.ctx)
		case err != nil:
			return n, err
		case w.waited > downloadGrace && float64(w.sent) < w.waited.Seconds()*float64(w.o.DownloadRate):
			return n, errDownloadSlow()
		}
	}
	return n, nil
}
