mkdir -p keep skip/deep; echo 1 > keep/a; echo 2 > skip/b; echo 3 > skip/deep/c
find . -path ./skip -prune -o -type f -print
find . -type f -exec grep -l 3 {} +
find . -name c -delete; find . -type f | sort
find . -type f -size -2c; touch -d '2024-01-01' skip/b; find . -newer skip/b -type f
