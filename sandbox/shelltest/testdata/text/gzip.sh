seq 1 1000 > n; gzip -kn n; gunzip -c n.gz | cmp - n && echo same; zcat n.gz | tail -n1; zgrep -c 99 n.gz
printf 'not gzip' | gunzip; echo "status $?"
xz -k n && xz -dc n.xz | wc -l && rm n.xz
