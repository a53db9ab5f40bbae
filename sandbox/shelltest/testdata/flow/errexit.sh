(set -e; false; echo never); echo $?; (set -e; false || true; if false; then :; fi; echo reached); (set -e; f() { false; echo in f; }; f && echo ok; f; echo never); echo $?
set -e; trap 'echo "exit trap $?"' EXIT; x=$(false) || echo caught; y=$(exit 4); echo never
