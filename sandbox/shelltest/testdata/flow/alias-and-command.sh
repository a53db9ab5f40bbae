alias hi='echo hello'; hi; shopt -s expand_aliases
alias hi='echo hello'
hi there
command -v echo; type -t if cd ls nothing; echo() { builtin echo "mine: $*"; }; echo x; command echo y; unset -f echo; hash -r; enable -n test 2>&1; type -t test
