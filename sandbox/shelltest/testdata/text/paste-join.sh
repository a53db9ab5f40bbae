printf '1 a\n2 b\n3 c\n' > l
printf '1 x\n3 z\n4 w\n' > r
paste l r
paste -d, -s l
join l r
join -a1 -a2 -e '?' -o 0,1.2,2.2 l r
join -v2 l r
