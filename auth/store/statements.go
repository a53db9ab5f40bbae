package store

import (
	"context"
	"database/sql"
	"errors"

	"satchel/internal/database"
)

// rows runs a query that many requests need, such as the check of a key. It caches prepared
// statements for SQLite, where compiling takes longer than running. PostgreSQL's driver has its
// own cache, and a pooler may not support prepared statements.
func (s *Store) rows(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s.db.Kind() != database.SQLite {
		return s.db.Read(ctx).Raw(query, args...).Rows()
	}
	stmt, err := s.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// row runs a query with a constant text, and reads its first row. The error is
// sql.ErrNoRows if there is none.
func (s *Store) row(ctx context.Context, query string, arg any, into ...any) error {
	rows, err := s.rows(ctx, query, arg)
	if err != nil {
		return err
	}
	if !rows.Next() {
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	return errors.Join(rows.Scan(into...), rows.Close())
}

func (s *Store) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	stmt := s.prepared[query]
	s.mu.Unlock()
	if stmt != nil {
		return stmt, nil
	}
	db, err := s.db.Read(ctx).DB()
	if err != nil {
		return nil, err
	}
	// Later requests use the statement too, so it must not end with this request.
	if stmt, err = db.PrepareContext(context.WithoutCancel(ctx), query); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.prepared[query]; other != nil {
		return other, stmt.Close()
	}
	s.prepared[query] = stmt
	return stmt, nil
}

func (s *Store) closeStatements() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for query, stmt := range s.prepared {
		errs = append(errs, stmt.Close())
		delete(s.prepared, query)
	}
	return errors.Join(errs...)
}
