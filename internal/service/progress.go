package service

import "context"

type progressKey struct{}

// WithProgress returns a context under which operations that take long report each
// step, in a few words for a person, to f. f may be called from several goroutines, but
// never after the operation returned.
func WithProgress(ctx context.Context, f func(step string)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// Progress returns the function to which an operation under ctx reports its steps. It is
// never nil.
func Progress(ctx context.Context) func(step string) {
	if f, ok := ctx.Value(progressKey{}).(func(string)); ok && f != nil {
		return f
	}
	return func(string) {}
}
