printf 'a b\nc\n' | xargs echo got
printf 'a b\nc\n' | xargs -n1 echo one
printf 'a b\0c\0' | xargs -0 -I{} echo '<{}>'
printf '1\n2\n3\n' | xargs -L2 echo
printf 'x\n' | xargs false; echo "status $?"
printf '' | xargs -r echo nothing
