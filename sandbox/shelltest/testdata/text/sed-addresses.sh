seq 1 20 > n
sed -n '2,4p;$p' n
sed '5,$d' n
sed -n '/^1/,/5/p' n
sed -n '3~5p' n
sed '$!N;s/\n/-/' n
