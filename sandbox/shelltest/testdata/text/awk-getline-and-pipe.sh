printf '3\n1\n2\n' > n
awk '{print | "sort"} END {close("sort"); print "done"}' n
awk 'BEGIN { while ((getline line < "n") > 0) print "got", line; "echo from a command" | getline v; print v }'
