f() { echo out; echo err >&2; }
f |& sort; f 2>&1 >/dev/null | sed 's/^/e: /'; f 2>/dev/null
{ f; f; } > both 2>&1; cat both
