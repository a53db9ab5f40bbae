printf 'alpha\nbeta\n' > f.txt
cp f.txt g.txt
sed -i.bak 's/a$/A/' f.txt g.txt
sed -i '1d' g.txt
head f.txt* g.txt*
