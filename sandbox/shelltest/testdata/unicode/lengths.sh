s='größe 日本 😀'; echo ${#s}; printf '%s' "$s" | wc -c -m; echo "$s" | awk '{print length($0), toupper($0)}'; echo "$s" | sed 's/./x/g'; echo "$s" | rev; printf '%10s|%-8s|\n' ü ö; expr length "$s"
