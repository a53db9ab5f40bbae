cat > d.json <<'X'
{"name":"ann","tags":["b","a"],"n":{"x":1.50,"y":null}}
X
jq . d.json
jq -c '.tags|sort' d.json
jq -r '.name, .n.x, .n.y' d.json
jq -r '.tags[]|ascii_upcase' d.json
jq '.missing?' d.json
jq -e '.n.y' d.json; echo "status $?"
