printf '%s' $'\a\b\e\f\n\r\t\v\\\'\"\?\101\x41\u20ac\U1F600\cA' | od -An -tx1
