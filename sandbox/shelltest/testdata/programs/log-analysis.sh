for i in {1..60}; do printf '10.0.0.%d - - [01/Jan/2024:00:%02d:00] "GET /p%d HTTP/1.1" %d %d\n' $((i % 5)) $i $((i % 3)) $((i % 7 ? 200 : 500)) $((i * 10)); done > log
awk '{print $1}' log | sort | uniq -c | sort -k1,1nr -k2; grep -c '" 500 ' log; awk '$(NF-1) == 500 {s += $NF} END {print s}' log; sed -E 's/.*"GET ([^ ]+) .*/\1/' log | sort | uniq -c
