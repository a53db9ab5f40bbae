printf '%s\n' '{"k":"a","v":1}' '{"k":"b","v":2}' '{"k":"a","v":3}' > l
jq -s -c 'group_by(.k)|map({(.[0].k): map(.v)|add})|add' l
jq -n -c --arg x 'it'\''s' --argjson y '[1,2]' '{x:$x,y:$y}'
jq -r '[.k,.v]|@tsv' l
jq -R -c 'split(" ")' <<< 'a b c'
echo '{bad' | jq . ; echo "status $?"
