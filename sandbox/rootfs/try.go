package rootfs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/agent"
)

// programs is what every root file system must be able to do: each line has to
// succeed as a sandbox's ordinary user. What they print is told.
const programs = `set -e
for p in bash git rg jq python3; do
	said=$($p --version)
	echo "${said%%$'\n'*}"
done
python3 -c 'import json, re, csv, sqlite3'
for p in awk bc column diff file find grep gzip join less patch ps sed sort tar tree unzip xargs xxd xz zip; do
	command -v $p > /dev/null || { echo "$p is missing" >&2; exit 1; }
done
[ "$(locale charmap)" = UTF-8 ]
[ "$(TZ=Europe/Berlin date -d @0 +%H)" = 01 ]
awk 'BEGIN { exit }'
cd "$(mktemp -d)" && git init -q . && echo a > a && git add a && git -c user.name=a -c user.email=a@b commit -qm a
`

// tryTime bounds a trial, of which most is the start of a sandbox.
const tryTime = 2 * time.Minute

// Try starts a sandbox of a runtime that lends the root file system, runs what
// every one must be able to run, and returns the versions that it printed.
func Try(ctx context.Context, rt space.Runtime) (versions []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "satchel-rootfs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	seed := &space.Seed{Checkout: filepath.Join(dir, "checkout"), Release: func() {}}
	if err := os.Mkdir(seed.Checkout, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(seed.Checkout, 0o777); err != nil {
		return nil, err
	}
	var id [32]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	sb, err := rt.Start(ctx, space.SandboxSpec{ID: space.SandboxID(hex.EncodeToString(id[:])), Seed: seed})
	if err != nil {
		return nil, fmt.Errorf("starting a sandbox: %w", err)
	}
	defer func() {
		if stopErr := sb.Stop(context.WithoutCancel(ctx)); err == nil {
			err = stopErr
		}
	}()
	c, err := agent.Connect(ctx, sb.Conn(), agent.Boot{Disk: 32 << 20, Inodes: 10_000, Tmp: 32 << 20, Output: 1 << 20})
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "No shell starts over this root file system.")
	}
	defer c.Close()
	r, err := c.Exec(ctx, agent.ExecRequest{Command: programs, WallTime: tryTime, HeadTail: 4096}, nil)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "A sandbox over this root file system ended while it was tried.")
	}
	if r.ExitCode != 0 {
		said := strings.Join(strings.Fields(string(r.Stderr.Head)), " ")
		return nil, fault.New(fault.Unavailable, "A sandbox over this root file system cannot run what it must (exit code %d): %.300s", r.ExitCode, said)
	}
	return strings.Split(strings.TrimSpace(string(r.Stdout.Head)), "\n"), nil
}
