printf '%s\n' a b c d | sed -n '1!G;h;$p'
printf '%s\n' a b c d | sed '/b/{x;p;x;}'
printf 'x,y\n' | sed 's/,/\n/;s/\(.*\)\n\(.*\)/\2\n\1/'
