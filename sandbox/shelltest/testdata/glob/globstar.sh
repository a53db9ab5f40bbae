mkdir -p a/b/c; touch top.md a/1.md a/b/2.md a/b/c/3.md; shopt -s globstar
echo **/*.md; echo **; echo **/; shopt -u globstar; echo **/*.md
