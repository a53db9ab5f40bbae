touch a b; chmod 600 a; chmod 755 b
find . -type f -perm 600; find . -type f -perm -u+x; find . -type f -printf '%f %m %s\n' | sort
find nowhere; echo "status $?"
