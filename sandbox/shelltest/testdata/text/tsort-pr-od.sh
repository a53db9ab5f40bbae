printf 'a b\nb c\na c\n' | tsort
printf 'x\0y\xff\n' | od -An -c
printf '%s\n' 1 2 3 4 5 6 | pr -3 -t -w 30
printf 'a,b\n' | hexdump -C 2>/dev/null || true
