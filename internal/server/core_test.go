package server

import (
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
)

// Attack: another user of the machine renames the database of a data directory
// in which everyone may write, and puts one with a key of their own there.
func TestDataDirectoryOfEveryone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes for others")
	}
	for mode, refused := range map[os.FileMode]bool{
		0o700: false, 0o750: false, 0o755: false, os.ModeSetgid | 0o770: false,
		0o702: true, 0o777: true, os.ModeSticky | 0o777: true,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			cfg := settings(t)
			if err := os.Mkdir(cfg.DataDir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(cfg.DataDir, mode); err != nil {
				t.Fatal(err)
			}
			c, err := OpenCore(t.Context(), cfg, "test", slog.New(slog.DiscardHandler))
			if err == nil {
				err = errors.Join(err, c.Close())
			}
			if !refused {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.PublicOf(err), "chmod 700") {
				t.Fatalf("%v, which does not say what to do", err)
			}
			if _, err := os.Stat(cfg.DataDir + "/satchel.db"); err == nil {
				t.Error("a database was made all the same")
			}
		})
	}
}

// addUser adds a person.
func addUser(t *testing.T, s *service.Service, name string, admin bool) store.User {
	t.Helper()
	u, err := s.AddUser(t.Context(), service.Operator(), service.AddUserInput{Name: name, Admin: admin})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// removeUser removes a person.
func removeUser(t *testing.T, s *service.Service, name string) {
	t.Helper()
	if _, err := s.RemoveUser(t.Context(), service.Operator(), service.RemoveUserInput{User: service.UserRef{Name: name}}); err != nil {
		t.Fatal(err)
	}
}
