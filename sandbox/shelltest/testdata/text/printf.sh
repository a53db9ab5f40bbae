printf '%s|%5s|%-5s|%05d|%x|%o|%e|%.3f|%c|%%\n' a b c 42 255 8 1234.5 3.14159 xyz
printf '%s\n' one two three
printf '%d %s\n' 1 a 2 b 3
printf '%b' 'a\tb\n\0101\n'
printf '%q ' 'a b' "it's" $'tab\t' ''; echo
printf '%(%Y)T\n' 0
printf '%d\n' notanumber; echo "status $?"
