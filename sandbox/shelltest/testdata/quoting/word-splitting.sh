v='a  b	c'; set -- $v; echo $# "$1|$2|$3"; set -- "$v"; echo $#
IFS=:; p=1:2::3; set -- $p; echo $# "$3"; echo "$*"; unset IFS; echo "$*"
IFS=, read -r x y z <<< 'a,b,c,d'; echo "$x|$y|$z"
