printf 'name:age\nann:3\nbartholomew:44\n' | column -t -s:
printf '%s\n' one two three four five | column -c 20
