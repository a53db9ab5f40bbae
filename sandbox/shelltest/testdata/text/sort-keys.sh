printf 'b 2\na 10\nc 2\na 1\n' > t
sort -k1,1 -k2,2n t
sort -k2,2n -s t
sort -t' ' -k2 -r t
sort -u -k2,2 t
sort -c t; echo "status $?"
