mkdir -p d/e; echo needle > d/1; echo 'a needle' > d/e/2; printf 'needle\0bin' > d/bin
grep -r needle . | sort
grep -rl needle d | sort
grep -rn --include='2' needle .
grep -c needle d/bin; grep -a -o needle d/bin
grep -rL needle d
