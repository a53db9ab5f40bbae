# What developers do. Users need none of it: see README.md.

export CGO_ENABLED := "0"

# List the recipes.
default:
    @just --list --unsorted

# Format, vet and run the tests that need no other program.
check:
    test -z "$(gofmt -l $(git ls-files '*.go'))"
    go vet ./...
    go test ./...

# Every test, with what it needs installed.
test *args:
    ./scripts/test {{ args }}

# Every test under the race detector (which alone needs a C compiler, and can start no sandbox).
race *args="./...":
    ./scripts/race {{ args }}

# Each fuzz target with so many inputs.
fuzz count="20000x":
    ./scripts/fuzz {{ count }}

# Measure the real binary; one JSON object per line. Suites: core, gitstore, pages, sandbox, search, sync.
bench suite="core" *args:
    ./scripts/bench {{ suite }} {{ args }}

# Measure how well search ranks, on the large data or on collections of your own.
eval *collections:
    ./scripts/eval {{ collections }}

# Real clients, the conformance suite and the load test against the real binary.
e2e:
    ./scripts/e2e

# Make the pictures in docs/images again.
images:
    ./scripts/build && node e2e/images.mjs

# The long suites, and every benchmark once. docs/testing.md says what runs where.
soak:
    ./scripts/race ./...
    SATCHEL_TEST_SOAK=1 ./scripts/test -timeout 0 ./...
    E2E_OUTAGE_SECONDS=60 ./scripts/e2e e2e/issuer.test.mjs
    E2E_LOAD_SECONDS=60 E2E_CHAOS_SECONDS=600 E2E_FILES=1 ./scripts/e2e e2e/soak/*.test.mjs
    ./scripts/fuzz 1000000x
    for suite in core gitstore pages sandbox search sync; do ./scripts/bench $suite --quick --json-only || exit 1; done
    ./scripts/test-cgroup2

# Build bin/satchel.
build:
    ./scripts/build

# Build and serve.
serve *args:
    ./scripts/serve {{ args }}

# Rewrite the generated documents and the golden files.
generate:
    go test ./internal/config ./tools ./web/api ./sandbox/oci ./cmd/satchel ./cmd/satchel/internal/cli ./integrations ./gitstore/remotes -update
