printf 'one two\nthree\nümlaut\n' > f
wc f; wc -l < f; wc -m f; wc -c f; wc -w f; wc -L f
nl f; nl -ba -w3 -s': ' f
echo 'a long line that is to be folded at some width' | fold -s -w 12
echo 'a long line that is to be formatted' | fmt -w 15
