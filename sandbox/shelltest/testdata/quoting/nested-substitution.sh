echo "$(echo "a $(echo 'b "c"') d")"; echo `echo \`echo deep\``; x=$(printf 'a\n\n\n'); echo "[$x]"
echo "${x:-"$(echo "no")"}" "$((1 + $(echo 2)))"
