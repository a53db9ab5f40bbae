mkdir -p a/b c; touch a/1.md a/b/2.md c/3.txt .hidden; ln -s a/1.md link
find . | sort
find . -name '*.md' -printf '%P %y\n' | sort
find . -type l -exec readlink {} \;
find a/b -depth
find . -empty -type f -not -name '.*' | sort
find . -maxdepth 1 -type d | sort
