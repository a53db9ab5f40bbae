printf '%s\n' start 1 2 stop 3 start 4 stop | awk '/start/,/stop/ {print NR": "$0}'
printf 'k=v\nk2 = v2\n' | awk -F' *= *' '{print $2 "<-" $1}'
