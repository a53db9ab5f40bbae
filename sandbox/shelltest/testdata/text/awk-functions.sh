awk 'function fib(n) { return n < 2 ? n : fib(n-1) + fib(n-2) }
BEGIN { for (i = 0; i < 15; i++) printf "%d ", fib(i); print "" }'
awk 'BEGIN { s = "hello world"; print length(s), toupper(s), substr(s, 7), index(s, "wor"), match(s, /o+ /), RSTART, RLENGTH }'
awk 'BEGIN { n = split("a:b:c", p, ":"); print n, p[3]; x = "aaa"; print gsub(/a/, "b", x), x }'
