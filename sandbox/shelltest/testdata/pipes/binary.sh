printf '\0\1\2\xff\xfe' | cat | od -An -tx1
head -c 256 < <(for i in {0..255}; do printf "\\x$(printf %x $i)"; done) | sha256sum
printf 'a\0b\0' | while IFS= read -r -d '' v; do echo "[$v]"; done
