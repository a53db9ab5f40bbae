cat > text <<'X'
It was the best of times, it was the worst of times, it was the age of wisdom,
it was the age of foolishness.
X
tr -cs '[:alpha:]' '\n' < text | tr A-Z a-z | sort | uniq -c | sort -k1,1nr -k2 | head -n5 | awk '{printf "%-6s %s\n", $2, $1}'
