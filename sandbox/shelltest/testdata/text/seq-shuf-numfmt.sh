seq 3; seq 2 2 8; seq -w 8 11; seq -s, 1 5; seq 5 -2 1; seq 0.5 0.25 1.25
numfmt --to=iec 1048576; numfmt --from=si 2K; printf '1500 x\n' | numfmt --field=1 --to=si
shuf -i 1-5 --random-source=/dev/zero | sort | tr '\n' ' '; echo
factor 360; expr 7 % 3; expr length hello; expr hello : 'h\(.*\)o'
