if [ 1 -eq 1 ] && [ a != b ]; then echo and; elif false; then echo no; else echo no; fi; [ -z '' ] && [ -n x ] && echo z; [ 2 -gt 10 ]; echo $?; [[ 2 > 10 ]]; echo $?
test -d . -a -r .; echo $?; [ a = ]; echo $?; [ -e /space ] || true; true && false || echo fallback
