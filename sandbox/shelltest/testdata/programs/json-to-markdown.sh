printf '%s' '[{"t":"One","d":true,"s":["a","b"]},{"t":"Two","d":false,"s":[]}]' > l.json
jq -r '.[] | "- [\(if .d then "x" else " " end)] \(.t)" + (if .s|length > 0 then " (" + (.s|join(", ")) + ")" else "" end)' l.json | tee list.md; jq '[.[]|select(.d|not)|.t]' l.json
