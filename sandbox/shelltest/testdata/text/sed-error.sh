printf 'a\n' | sed 's/a/b'
echo "status $?"
sed -n p no-such-file
echo "status $?"
