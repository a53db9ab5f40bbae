package acme

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"time"
)

// look is the longest sleep before the loop checks the clock again. Somebody may set the
// clock, and the clock continues while the machine sleeps.
const look = time.Hour

// run requests a certificate whenever one is due, until ctx ends.
func (m *Manager) run(ctx context.Context) {
	for {
		for {
			wait := m.Status().NextAttempt.Sub(m.o.Now())
			if wait <= 0 {
				break
			}
			if m.sleep(ctx, min(wait, look)) != nil {
				return
			}
		}
		attempt, cancel := context.WithTimeout(ctx, m.o.Timeout)
		cert, err := m.obtain(attempt)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			m.failed(err)
			continue
		}
		unsaved := m.saveCertificate(cert)
		m.use(cert)
		m.log.Info("obtained a certificate", "not_after", cert.Leaf.NotAfter, "issuer", cert.Leaf.Issuer.String())
		m.notBefore(m.o.Now().Add(cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore) / 10))
		if unsaved != nil {
			// This process uses the certificate until the process ends. The next start would
			// request another one.
			what := explain(unsaved, m.o.Domain)
			m.log.Error("the certificate cannot be saved", "do", what, "err", unsaved)
			m.mu.Lock()
			m.status.LastError, m.status.LastFailure = what, m.o.Now()
			m.mu.Unlock()
		}
	}
}

// notBefore delays the next attempt until t, if it would be earlier. If this machine's clock is
// wrong, every new certificate may seem due at once.
func (m *Manager) notBefore(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.status.NextAttempt.Before(t) {
		m.status.NextAttempt = t
	}
}

// failed stores and logs the error, and sets the time of the next attempt.
func (m *Manager) failed(err error) {
	now := m.o.Now()
	what := explain(err, m.o.Domain)
	m.mu.Lock()
	s := &m.status
	s.Failures++
	first := m.o.RetryMin
	if unreachable(err) {
		// A request that does not arrive uses up no limit of the authority. Often the machine
		// has just started.
		first = min(first, 15*time.Second)
	}
	pause := first << min(s.Failures-1, 20)
	if pause <= 0 || pause > m.o.RetryMax {
		pause = m.o.RetryMax
	}
	// Wait as long as the authority asks, but at most a week.
	pause = max(pause, min(retryAfter(err), 7*24*time.Hour))
	s.LastError, s.LastFailure, s.NextAttempt = what, now, now.Add(pause)
	left := s.NotAfter.Sub(now)
	m.mu.Unlock()

	args := []any{"do", what, "again_in", pause.Round(time.Second), "err", err}
	switch {
	case m.cert.Load() == nil:
		m.log.Error("there is no certificate, and the authority gives none: nobody can connect over https", args...)
	case left <= 0:
		m.log.Error("the certificate has expired, and the authority gives no other", args...)
	default:
		m.log.Warn("the certificate cannot be renewed", append(args, "expires_in", left.Round(time.Minute))...)
	}
}

// renewAt returns when a certificate must be renewed: when a third of its life is left, or
// half if its life is shorter than ten days, as Let's Encrypt recommends. A hash of the
// certificate makes the time up to a thirtieth of its life earlier, so that certificates of
// the same age are not all renewed at once.
func renewAt(leaf *x509.Certificate) time.Time {
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	left := life / 3
	if life < 10*24*time.Hour {
		left = life / 2
	}
	sum := sha256.Sum256(leaf.Raw)
	return leaf.NotAfter.Add(-left - life/30*time.Duration(sum[0])/256)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
