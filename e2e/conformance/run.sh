#!/usr/bin/env bash
# Runs both required sets of the protocol's conformance suite against a running
# server that was built with the tag "conformance", and fails unless every
# scenario of both passes.
#
#   run.sh URL TOKEN      URL of the MCP endpoint, and a bearer token of its
#
# It needs node and npm, and installs what is pinned in package-lock.json.
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: run.sh URL TOKEN" >&2
  exit 2
fi
url=$1 token=$2
cd "$(dirname "$0")/.."

# The suite needs a newer Node.js than some systems have, so npm brings one.
node=node_modules/node/bin/node
suite=node_modules/@modelcontextprotocol/conformance/dist/index.js
if [ ! -x "$node" ] || [ ! -f "$suite" ]; then
  npm ci --no-progress >&2
fi

out=$(mktemp -d)
coproc PROXY { exec "$node" conformance/proxy.mjs "$url" "$token"; }
proxy_pid=$PROXY_PID
trap 'kill "$proxy_pid" 2>/dev/null || true; rm -rf "$out"' EXIT
read -r port <&"${PROXY[0]}"

failed=0
# run_set VERSION WANT: WANT is how many scenarios the version requires of a
# server. The suite lists each with "✓" or "✗" in its summary, and runs others
# besides, which do not count: those it names again after "Not scored".
run_set() {
  local version=$1 want=$2 log="$out/$1.log" code=0 passed
  "$node" "$suite" server --url "http://localhost:$port/mcp" --requirements "$version" -o "$out/$version" >"$log" 2>&1 || code=$?
  passed=$(awk '
    /^=== SUMMARY ===/ { summary = 1 }
    summary && /^✓ / { sub(/:$/, "", $2); ok[$2] = 1 }
    summary && (/^  ✓ / || /^  ✗ /) { delete ok[$2] }
    END { n = 0; for (name in ok) n++; print n }' "$log")
  echo "$version: $passed of $want required scenarios pass"
  if [ "$code" -ne 0 ] || [ "$passed" -ne "$want" ]; then
    sed -n '/=== SUMMARY ===/,$p' "$log"
    failed=1
  fi
}

run_set 2025-11-25 30
run_set 2026-07-28 37
exit "$failed"
