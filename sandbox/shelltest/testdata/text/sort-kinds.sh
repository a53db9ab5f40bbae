printf '10\n9\n1e2\n-3\n2.5\n' > n
sort n; sort -n n; sort -g n; sort -r n
printf '2M\n1G\n900K\n' | sort -h
printf 'v1.10\nv1.9\nv1.2\n' | sort -V
