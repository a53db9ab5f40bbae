package service_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"satchel/gitstore/damagetest"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
)

// A repair stops sandboxes that started without the damaged file.
func TestRepairStopsSandboxes(t *testing.T) {
	ctx := t.Context()
	w := servicetest.New(t, time.Now)
	w.Write(map[string]string{"a.md": "a\n"})
	var stopped []space.SpaceID
	w.Attach(service.Running{StopSpace: func(_ context.Context, id space.SpaceID) error {
		stopped = append(stopped, id)
		return nil
	}})
	repo := filepath.Join(w.Options.SpacesDir, string(w.Space)+".git")
	whole := filepath.Join(t.TempDir(), "whole.git")
	if err := os.CopyFS(whole, os.DirFS(repo)); err != nil {
		t.Fatal(err)
	}
	in := service.RepairSpaceInput{Space: service.SpaceRef{ID: w.Space}, From: whole}
	if done, err := w.RepairSpace(ctx, service.Operator(), in); err != nil || done.Restored != 0 || len(stopped) != 0 {
		t.Errorf("without damage: %+v, %v, stopped %q", done, err, stopped)
	}
	damagetest.TurnByte(t, repo, "main:a.md")
	if done, err := w.CheckSpaces(ctx, service.Operator(), service.CheckSpacesInput{}); err != nil || len(done) != 1 || done[0].Label() != "owner/owner" || len(done[0].Damaged) != 1 {
		t.Errorf("the check: %+v, %v", done, err)
	}
	if done, err := w.RepairSpace(ctx, service.Operator(), in); err != nil || done.Restored != 1 || !slices.Equal(stopped, []space.SpaceID{w.Space}) {
		t.Errorf("%+v, %v, stopped %q", done, err, stopped)
	}
}
