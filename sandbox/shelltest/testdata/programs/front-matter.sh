mkdir k; printf -- '---\ntitle: A page\ntags: [x, y]\n---\n# Text\nbody\n' > k/a.md; printf '# No front matter\n' > k/b.md
for f in k/*.md; do t=$(sed -n '/^---$/,/^---$/s/^title: //p' "$f"); echo "$f: ${t:-$(sed -n 's/^# //p;q' "$f")}"; done | tee index; awk '/^---$/ {n++; next} n == 2' k/a.md
