x=0; seq 1 3 | while read -r n; do x=$n; done; echo $x
shopt -s lastpipe; set +m; seq 1 3 | while read -r n; do x=$n; done; echo $x
