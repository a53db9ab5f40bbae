printf '\xef\xbb\xbfa\r\nb\r\n' > f
cat -A f; tr -d '\r' < f | od -c; sed 's/\r$//' f | wc -c; file -b f 2>/dev/null | cut -c1-20
