mkfifo p; (echo through > p) & cat p; wait; rm p
coproc { while read -r l; do echo "co $l"; done; }
echo hi >&"${COPROC[1]}"; read -r answer <&"${COPROC[0]}"; echo "$answer"; exec {COPROC[1]}>&-; wait
