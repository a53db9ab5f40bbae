unset u; e=; echo "${u-def}" "${u:-def}" "[${e-def}]" "${e:-def}" "${u+alt}" "${e+alt}"; echo "${u:=set}" $u; (echo "${nothing:?must be set}"); echo "status $?"
