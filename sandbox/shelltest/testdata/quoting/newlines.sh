x='line one
line two'; echo "$x"; echo $x; printf '%q\n' "$x"
echo a \
  b; echo 'c \
d'
