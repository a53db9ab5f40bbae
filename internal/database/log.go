package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// queryLog adapts slog to gorm's logger. It implements gorm.ParamsFilter, so that the
// statements in the log have placeholders and never a value.
type queryLog struct {
	log  *slog.Logger
	slow time.Duration
}

var (
	_ logger.Interface  = (*queryLog)(nil)
	_ gorm.ParamsFilter = (*queryLog)(nil)
)

// ParamsFilter removes the values of a statement before gorm writes it out.
func (*queryLog) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}

// LogMode does nothing, because slog's handler decides which records are logged.
func (q *queryLog) LogMode(logger.LogLevel) logger.Interface { return q }

func (q *queryLog) Info(ctx context.Context, format string, args ...any) {
	q.log.DebugContext(ctx, "gorm: "+fmt.Sprintf(format, args...))
}

func (q *queryLog) Warn(ctx context.Context, format string, args ...any) {
	q.log.WarnContext(ctx, "gorm: "+fmt.Sprintf(format, args...))
}

func (q *queryLog) Error(ctx context.Context, format string, args ...any) {
	q.log.ErrorContext(ctx, "gorm: "+fmt.Sprintf(format, args...))
}

// Trace logs a statement that was slow or failed. A failure is only logged for debugging,
// because it is also returned and its caller reports it.
func (q *queryLog) Trace(ctx context.Context, begin time.Time, fc func() (string, int64), err error) {
	took := time.Since(begin)
	level, msg := slog.LevelDebug, ""
	switch {
	case took >= q.slow:
		level, msg = slog.LevelWarn, "slow query"
	case err != nil && !errors.Is(err, gorm.ErrRecordNotFound):
		msg = "query failed"
	default:
		return
	}
	if !q.log.Enabled(ctx, level) {
		return
	}
	stmt, rows := fc()
	attrs := []slog.Attr{slog.String("sql", stmt), slog.Int64("rows", rows), slog.Duration("took", took)}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	q.log.LogAttrs(ctx, level, msg, attrs...)
}
