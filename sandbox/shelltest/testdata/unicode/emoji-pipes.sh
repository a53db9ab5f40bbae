for i in 1 2 3; do printf '👩‍👩‍👧 %d ✓\n' $i; done | tac | sed 's/✓/✗/' | cut -d' ' -f2,3
