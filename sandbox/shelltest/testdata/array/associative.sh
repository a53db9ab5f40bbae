declare -A m=([one]=1 ['two words']=2); m[ü]=3; for k in "${!m[@]}"; do echo "$k=${m[$k]}"; done | sort; echo ${#m[@]}; [[ -v m[one] ]] && echo set; unset 'm[one]'; [[ -v m[one] ]] || echo unset
declare -p m | tr ' ' '\n' | sort | head -n3
