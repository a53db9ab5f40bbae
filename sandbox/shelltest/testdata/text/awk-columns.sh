printf 'ann 3 x\nbob 5 y\ncid 7 z\n' > t
awk '{print $1, $NF, NF, NR}' t
awk '{s += $2} END {print s, s/NR}' t
awk -F'[ ]' -v OFS=';' '{$2 = $2 * 2; print}' t
awk 'NR==2, NR==3 {printf "%-5s|%5.2f|%03d\n", $1, $2, $2}' t
