printf 'a1\nb22\nc333\n' > f
grep -E '^[ab][0-9]{1,2}$' f
grep -P '\d{3}(?<=333)' f
grep -F '1' f
grep -e a -e c f
grep -A1 -B1 b22 f
grep -m1 . f
