python3 - <<'X'
import json, re, sys, os
print(sorted({"b": 1, "a": [1, 2]}.items()))
print(json.dumps({"ü": "é"}, ensure_ascii=False), re.sub(r"(\w+) (\w+)", r"\2 \1", "hello world"))
print(sys.stdin.encoding, sys.getfilesystemencoding())
print("to stderr", file=sys.stderr)
X
python3 -c 'import sys; sys.exit(5)'; echo "status $?"
