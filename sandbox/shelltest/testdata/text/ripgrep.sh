mkdir -p d; printf 'one needle\ntwo\n' > d/a.md; printf 'needle\n' > d/b.txt; printf '*.txt\n' > .ignore
rg -n --sort path needle
rg -l --sort path needle
rg -c needle d/b.txt
rg --no-ignore --sort path -g '*.txt' needle
rg nothing-here; echo "status $?"
rg -o 'n(ee)dle' -r 'N$1' d/a.md
