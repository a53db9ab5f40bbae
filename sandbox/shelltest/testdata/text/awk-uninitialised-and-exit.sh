awk 'BEGIN { print x + 0, "[" y "]"; exit 7 }'
echo "status $?"
printf 'a\n' | awk '{ exit } END { print "end runs" }'
awk 'BEGIN { printf "%s %c %x %o %e\n", "s", 65, 255, 8, 12345.678 }'
