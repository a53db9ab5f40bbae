dd if=/dev/zero of=z bs=1k count=3 status=none; stat -c '%s %F' z
truncate -s 10 z; wc -c < z
printf 'abcdefgh' > f; dd if=f bs=1 skip=2 count=3 status=none; echo
printf 'XY' | dd of=f bs=1 seek=3 conv=notrunc status=none; cat f; echo
cmp f z; cmp -l f f; echo "status $?"
