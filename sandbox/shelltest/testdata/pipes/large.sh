seq 1 200000 | tee n | wc -l
head -c 5000000 /dev/zero | tr '\0' x | wc -c
sort -rn n | head -n2 | tr '\n' ' '; echo
sha256sum < n; rm n
