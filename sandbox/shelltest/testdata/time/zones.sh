for z in UTC America/New_York Asia/Kolkata Pacific/Auckland EST5EDT; do TZ=$z date -d @1720000000 '+%F %R %Z'; done; TZ=UTC printf '%(%F %T)T\n' 86399; TZ=Nowhere/Land date -d @0 +%R
