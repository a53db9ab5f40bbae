f() { echo "args $# $1"; return 3; }; f a b; echo $?; g() { local v=1; v=$((v + $1)); echo $v; }; x=$(g 4); echo $x; fact() { (($1 < 2)) && echo 1 || echo $(($1 * $(fact $(($1 - 1))))); }; fact 10
function k { echo "${FUNCNAME[0]} from ${FUNCNAME[1]-none}"; }; w() { k; }; w; unset -f f; f; echo $?; type -t g; declare -f g
