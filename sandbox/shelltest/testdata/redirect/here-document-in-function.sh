f() { cat <<X
arg $1
X
}
f one; f two; while read -r l; do echo "[$l]"; done <<X
a
b

X
cat <<A <<B
first
A
second
B
