a='single $x `y` \n'; b="double \$x \`y\` \\n \"q\""; echo "$a" "$b"
echo 'it'\''s' "it's" it\'s $'it\'s\ttab\x41\u00fc'
echo a\ b "c  d" e   f; echo "" '' | od -c
