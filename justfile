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
    . scripts/install race && CGO_ENABLED=1 ./scripts/test-postgres go test -race {{ args }}

# Each fuzz target with so many inputs.
fuzz count="20000x":
    ./scripts/fuzz {{ count }}

# Measure the real binary; one JSON object per line. Suites: core.
bench suite="core" *args:
    ./scripts/bench {{ suite }} {{ args }}

# Real clients, the conformance suite and the load test against the real binary.
e2e:
    ./scripts/e2e

# The long suites in full; CI runs a slice of them.
soak:
    E2E_LOAD_SECONDS=60 ./scripts/e2e
    ./scripts/fuzz 1000000x

# Build bin/satchel.
build:
    ./scripts/build

# Build and serve.
serve *args:
    ./scripts/serve {{ args }}

# Write docs/configuration.md and the golden files anew.
generate:
    go test ./internal/config ./tools ./sandbox/oci ./cmd/satchel ./cmd/satchel/internal/cli -update
