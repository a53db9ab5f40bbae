for f in a.md b.TXT c; do case $f in *.md) echo md ;; *.[Tt][Xx][Tt]) echo txt ;& c) echo fell ;; *) echo other ;; esac; done
[[ abc == a* ]] && echo 1; [[ abc == "a*" ]] || echo 2; [[ abc =~ ^a(.)(c)$ ]] && echo "${BASH_REMATCH[@]}"; [[ a < b && ! -e nothing ]] && echo 3
