printf 'alpha\nbeta\nGamma\nalphabet\n' > f
grep alpha f; grep -v a f; grep -i gamma f; grep -c a f; grep -n bet f; grep -x alpha f
grep -w beta f; grep -o 'al[a-z]*' f; grep nothing f; echo "status $?"
grep x no-such; echo "status $?"
