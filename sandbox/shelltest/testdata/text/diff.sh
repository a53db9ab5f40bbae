printf 'a\nb\nc\n' > x; printf 'a\nB\nc\nd\n' > y
diff x y; echo "status $?"
diff -u --label x --label y x y
diff -y -W 20 x y
diff -q x y; diff -q x x; echo "status $?"
diff -c --label 1 --label 2 x y | tail -n +4
