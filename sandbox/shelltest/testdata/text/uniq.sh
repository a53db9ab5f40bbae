printf 'a\na\nb\na\n' | uniq -c
printf 'a\na\nb\na\n' | uniq -d
printf 'a\na\nb\na\n' | uniq -u
printf 'x 1\ny 1\nz 2\n' | uniq -f1
printf 'A\na\n' | uniq -i
