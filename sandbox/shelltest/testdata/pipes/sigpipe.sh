yes | head -n2; echo "${PIPESTATUS[*]}"
seq 1 1000000 | head -n1; echo "${PIPESTATUS[*]}"
(trap '' PIPE; printf 'x%.0s' {1..100000} 2>/dev/null || echo 'write failed' >&2) | true
