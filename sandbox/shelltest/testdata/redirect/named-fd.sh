exec {fd}> f; echo one >&$fd; echo two >&$fd; exec {fd}>&-; cat f; [ "$fd" -ge 10 ] && echo 'ten or more'
exec 7<> f; read -r l <&7; echo "$l"; echo TWO >&7; exec 7>&-; cat f
