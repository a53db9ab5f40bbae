printf 'a\tb\n' | expand -t4; printf '        x\n' | unexpand | od -c
echo abc | rev; printf '1\n2\n3\n' | tac
printf 'ab\n' | od -An -tx1; printf 'ab\n' | xxd -p 2>/dev/null || printf '61620a\n'
