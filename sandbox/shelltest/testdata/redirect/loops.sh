for i in 1 2 3; do echo $i; done > f; while read -r n; do echo "n$n"; done < f; if true; then echo yes; fi > g; cat g
while read -r a <&3 && read -r b <&4; do echo "$a$b"; done 3< f 4< <(printf 'x\ny\n')
