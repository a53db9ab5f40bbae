x=1; (x=2; echo $x; exit 5); echo "$? $x"; echo $BASH_SUBSHELL $(echo $BASH_SUBSHELL); (cd /; :); basename "$PWD"; y=$(x=3; echo $x); echo $x $y; { x=4; }; echo $x
