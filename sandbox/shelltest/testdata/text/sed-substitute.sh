printf 'one two\nthree two two\n' > in
sed 's/two/2/' in
sed 's/two/2/g' in
sed -n 's/t\(wo\|hree\)/<\1>/gp' in
sed -E 's/(t)(wo)/\2\1/2' in
