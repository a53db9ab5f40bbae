printf '%s' '{"s":"ü \u00e9 日本 \ud83d\ude00","t":"tab\there"}' | jq .
printf '%s' '["é"]' | jq -a -c .
printf '%s' '"日本"' | jq length
