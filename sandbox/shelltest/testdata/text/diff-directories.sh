mkdir p q; echo 1 > p/same; echo 1 > q/same; echo 2 > p/a; echo 3 > q/a; echo 4 > q/only
diff -r p q; echo "status $?"
diff -rq p q
