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
	// downloadGrace is for how long who downloads may be as slow as they like.
	downloadGrace = time.Minute
	// downloadPiece is how much is written at once, so that who takes little of it
	// is seen to take something.
	downloadPiece = 32 << 10
	// rawFiles is how many files as they are one person may load for each download,
	// and rawWait how long another waits: a page may show many pictures.
	rawFiles = 4
	rawWait  = 10 * time.Second
)

// downloading is one download.
type downloading struct {
	space   space.SpaceID
	user    space.UserID
	session string
	raw     bool
	end     context.CancelCauseFunc
}

func errDownloadRight() error {
	return fault.New(fault.Forbidden, "The download was ended, because you may not read this space here any more.")
}

func errDownloadStopping() error {
	return fault.New(fault.Unavailable, "The server is about to stop. Try again in a moment.")
}

func errDownloadSlow() error {
	return fault.New(fault.Limited, "The download was ended, because too little of it was taken.")
}

// download begins one, whose context ends with the right to it; leave must be
// called. Where there are too many it waits so long for another's end.
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

// enterDownload notes a download where there is room; else freed is closed when
// another ends.
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
		f = fault.New(fault.Limited, "You have %d downloads under way already. Wait until one is done, or end one.", own)
	case len(l.downloads) >= l.o.MaxAllDownloads:
		f = fault.New(fault.Unavailable, "Too many people download something at this moment. Try again in a few minutes.")
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

// BeginDownload lets a visitor download something of a space; leave must be called.
// w ends with the right to it, and where too little of it is taken.
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
	// Who lost the right between the look at it and here was not ended.
	if !s.StillIn(ctx, v, id) {
		left()
		return ctx, nil, nil, ErrGone
	}
	out := &downloadWriter{ResponseWriter: v.W, rc: http.NewResponseController(v.W), ctx: ctx, o: s.Live.o, now: s.Now, looked: s.Now()}
	out.good = func() bool { return s.StillIn(ctx, v, id) }
	stop := context.AfterFunc(ctx, out.cut)
	return ctx, out, func() {
		out.close()
		stop()
		left()
	}, nil
}

// downloadWriter writes to who takes it, as long as they may.
type downloadWriter struct {
	http.ResponseWriter
	rc     *http.ResponseController
	ctx    context.Context
	o      LiveOptions
	now    func() time.Time
	good   func() bool // whether they may still have it
	looked time.Time
	sent   int64
	waited time.Duration // for them to take it

	mu     sync.Mutex
	closed bool // the connection is the server's again
}

// cut ends a write that waits.
func (w *downloadWriter) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		_ = w.rc.SetWriteDeadline(time.Unix(1, 0)) // where the connection has any
	}
}

// close gives the connection back, which may be used on.
func (w *downloadWriter) close() {
	if w.sent > 0 && w.allow() == nil {
		_ = w.rc.Flush() // where the connection can
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.ctx.Err() == nil {
		_ = w.rc.SetWriteDeadline(time.Time{}) // where the connection has any
	}
}

// allow gives the next write its time.
func (w *downloadWriter) allow() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.o.DownloadStall)) // where the connection has any
	return nil
}

// Write implements io.Writer. It hides that the connection may read by itself.
func (w *downloadWriter) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if now := w.now(); now.Sub(w.looked) >= w.o.Heartbeat {
			if w.looked = now; !w.good() {
				return n, errDownloadRight()
			}
		}
		if err := w.allow(); err != nil {
			return n, err
		}
		began := w.now()
		m, err := w.ResponseWriter.Write(p[n:min(n+downloadPiece, len(p))])
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
