printf 'a\nb\nc\n' > f; cp f f.orig2; printf 'a\nB\nc\nd\n' > g
diff -u --label a/f --label b/f f g > p.diff
patch -p1 < p.diff; cat f
patch -R -p1 < p.diff; cmp f f.orig2 && echo same
echo other > f; patch -p1 < p.diff; echo "status $?"; cat f.rej
