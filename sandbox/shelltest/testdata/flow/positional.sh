set -- a b c d e f g h i j k; echo $1 ${10} ${11} $#; shift 3; echo $1 $#; shift 100; echo $?; set --; echo $#; f() { echo $0; }; f; echo "$0" "$BASH_ARGV0"
