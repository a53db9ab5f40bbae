echo 'Hello, World' | tr a-z A-Z
echo 'Hello, World' | tr -d lo
echo 'aabbccdd' | tr -s a-c
echo 'a1b2' | tr -c '[:alpha:]\n' '_'
printf 'a\tb\r\n' | tr '\t\r' '  '
