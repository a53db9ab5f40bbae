printf 'e\u0301\n\u00e9\n' > f; cat f; awk '{print length($0)}' f; sort f | od -An -tx1; printf '\u202eabc\u200b\n' | wc -m; cmp <(printf '\u00e9') <(printf 'e\u0301') | cut -d, -f2
