set -x; a=1; echo "$a b"; for i in 1 2; do :; done; f() { [[ $1 = x ]]; }; f x; set +x; PS4='line ${LINENO}> '; set -x; : done
