for i in a b c; do [ $i = b ] && continue; echo $i; done; i=0; while true; do ((++i > 3)) && break; echo $i; done; until ((i <= 1)); do echo u$((i--)); done
for x; do echo never; done; for i in 1 2; do for j in 1 2 3; do [ $j = 2 ] && continue 2; echo $i$j; done; done
