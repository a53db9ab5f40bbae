cat > prog <<'X'
# joins lines that end in a backslash
:again
/\\$/ { N; s/\\\n//; b again
}
y/abc/xyz/
1i\
first
$a\
last
X
printf 'a\\\nb\\\nc\nplain cab\n' | sed -f prog
