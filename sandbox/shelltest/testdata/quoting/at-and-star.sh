set -- 'a b' c ''; for x in "$@"; do echo "<$x>"; done; for x in $*; do echo "[$x]"; done
printf '(%s)' "$*"; echo; f() { echo $#; }; f "$@"; f "$*"; f $@; f "${@:2}"; f "x$@y"
