exec 3> three 4>&1; echo to three >&3; echo to four >&4; exec 3>&-; cat three; echo x >&3; echo "status $?"
exec 5< three; read -r a <&5; echo "$a"; exec 5<&-; { echo o; echo e >&2; } 3>&1 1>&2 2>&3 | sed 's/^/swapped /'
