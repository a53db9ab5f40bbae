shopt -s extglob; touch a.md b.txt c.md d 1 22 333
echo !(*.md); echo @(a|b).*; echo +([0-9]); echo ?(d); echo *(2); x=aaabbb; echo "${x##+(a)}" "${x//@(a|b)/-}"
case abc in @(abc|d)) echo match ;; esac
