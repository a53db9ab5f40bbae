printf 'the cat the dog\na cat the end\n' | awk '{for (i=1;i<=NF;i++) n[$i]++} END {for (w in n) print n[w], w}' | sort -k1,1nr -k2
