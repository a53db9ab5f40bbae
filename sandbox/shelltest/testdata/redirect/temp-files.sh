t=$(mktemp); [ -f "$t" ] && stat -c %a "$t"; d=$(mktemp -d); stat -c '%a %F' "$d"; mktemp -u abc.XXXX | wc -c
u=$(mktemp ./x.XXXXXX.txt); echo "${#u}"; rm -r "$t" "$d" "$u"; mktemp /no/such/XXXXXX; echo "status $?"
