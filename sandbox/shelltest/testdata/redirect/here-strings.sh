cat <<< hello; x='a  b'; cat <<< $x; cat <<< "$x"; read -r a b <<< "1 2 3"; echo "$b"; wc -c <<< ''; tr a b <<< $'a\na'
