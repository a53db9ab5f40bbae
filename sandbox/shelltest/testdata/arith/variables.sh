i=5; echo $((i++)) $i $((++i)) $((i += 3)) $i; a=b; b=7; echo $((a + 1)); declare -i n; n='3*4'; echo $n; let 'x = 2 + 3' y=x*2; echo $x $y
unset q; echo $((q + 1)); for ((i = 0, j = 10; i < j; i += 3, j--)); do echo $i $j; done
