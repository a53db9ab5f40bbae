echo out > /dev/stdout; echo err > /dev/stderr; echo gone > /dev/null; cat /dev/null; echo via fd > /dev/fd/1
echo in | cat /dev/stdin; echo x | cat - /dev/null
