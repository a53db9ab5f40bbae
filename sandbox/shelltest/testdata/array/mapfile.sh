printf 'a b\nc\n\nd' > f; mapfile -t m < f; echo ${#m[@]}; printf '[%s]' "${m[@]}"; echo; readarray -d : -t n <<< 'x:y:z'; echo "${#n[@]} ${n[1]}"
read -r -a w <<< 'one  two three'; echo "${w[2]}"; mapfile -s1 -n1 -t o < f; echo "${o[@]}"
