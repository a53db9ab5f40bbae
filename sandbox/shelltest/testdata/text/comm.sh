printf 'a\nb\nc\n' > x
printf 'b\nc\nd\n' > y
comm x y; comm -12 x y; comm -3 x y
printf 'b\na\n' > z
comm x z; echo "status $?"
