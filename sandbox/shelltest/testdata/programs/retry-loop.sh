n=0; try() { ((++n >= 3)); }; until try; do echo "attempt $n failed"; ((n > 5)) && exit 1; done; echo "done after $n"; for i in {1..3}; do (exit $((i < 3))) && { echo "ok at $i"; break; }; done
