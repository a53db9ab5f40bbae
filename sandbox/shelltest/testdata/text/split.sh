seq 1 25 > n
split -l 10 n part-
wc -l part-*
split -b 20 -d -a 3 n byte.
ls; cat part-* | cmp - n && echo whole
csplit -s -f c n 10 20 && wc -l c0*
