echo 1 > f; echo 2 >> f; cat f; set -C; echo 3 > f; echo "status $?"; echo 4 >| f; cat f
: > g; [ -s g ] || echo empty; > h; ls
