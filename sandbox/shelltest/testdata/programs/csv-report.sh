cat > s.csv <<'X'
city,year,n
Bonn,2023,5
Köln,2023,7
Bonn,2024,11
X
tail -n +2 s.csv | sort -t, -k1,1 -k2,2n | awk -F, '{t[$1]+=$3; n[$1]++} END {for (c in t) printf "%s: %d in %d years\n", c, t[c], n[c]}' | sort; python3 -c 'import csv; print(sum(int(r["n"]) for r in csv.DictReader(open("s.csv", encoding="utf-8"))))'; head -n1 s.csv | tr , '\n' | nl
