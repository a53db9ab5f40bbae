x=5; cat <<A; cat <<'B'; cat <<-C
x is $x $(echo sub) \$x
A
x is $x $(echo sub) \$x
B
	tabs go
	  but blanks stay $((x*2))
	C
cat <<"D" | tr a-z A-Z
piped $x
D
