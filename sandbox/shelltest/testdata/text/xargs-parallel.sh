mkdir in; for i in 1 2 3 4 5 6; do echo $i > in/$i; done
ls in | xargs -P3 -I{} cp in/{} {}.copy
ls; cat *.copy
