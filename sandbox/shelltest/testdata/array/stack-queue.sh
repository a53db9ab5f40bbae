s=(); for i in 1 2 3; do s+=($i); done; while ((${#s[@]})); do echo "${s[-1]}"; unset 's[-1]'; done; q=(a b c); echo "${q[0]}"; q=("${q[@]:1}"); echo "${q[@]}"
