f() { local -n ref=$1; ref+=(new); local x=inner; g; }; g() { echo "g sees $x"; }; x=outer; arr=(old); f arr; echo "${arr[@]}" $x
h() { declare -g made=here; local -r c=1; c=2; }; h; echo "$made"; readonly R=1; (R=2); echo "status $?"
