package service

import "context"

type progressKey struct{}

// WithProgress returns a context with which long operations report their steps to f, in
// words for people. f may be called from several goroutines, but not after the operation
// has returned.
func WithProgress(ctx context.Context, f func(step string)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// Progress returns the function of WithProgress. It is never nil.
func Progress(ctx context.Context) func(step string) {
	if f, ok := ctx.Value(progressKey{}).(func(string)); ok && f != nil {
		return f
	}
	return func(string) {}
}
