awk 'BEGIN { print 0.1 + 0.2, 1/3, 2**0.5, int(-3.7), 1e300*1e10 }'
python3 -c 'print(0.1 + 0.2, 10**30, 7 // -2, round(2.5))'
printf '%.2f %g %s\n' 2.345 0.0001 1e3; command -v bc > /dev/null && echo 'scale=4; 10/3' | bc || echo 3.3333
