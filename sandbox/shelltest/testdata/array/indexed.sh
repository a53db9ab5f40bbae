a=(x 'y z' w); echo ${#a[@]} "${a[1]}" "${a[-1]}" "${a[@]:1}" "${!a[@]}"; a+=(v); a[10]=ten; echo "${!a[@]}"; unset 'a[1]'; echo "${a[@]}"
printf '<%s>' "${a[@]}"; echo; b=("${a[@]/#/p-}"); echo "${b[*]}"; IFS=,; echo "${a[*]}"
