printf 'a:b:c:d\n1:2:3\nplain\n' > t
cut -d: -f2 t; cut -d: -f2- -s t; cut -c1-3 t; cut -b2,4 t
cut -d: -f1,3 --output-delimiter=' | ' t
cut -d: -f0 t; echo "status $?"
