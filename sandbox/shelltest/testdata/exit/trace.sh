set -x
x=$(echo sub); [ "$x" = sub ] && eval 'echo "$x"'
