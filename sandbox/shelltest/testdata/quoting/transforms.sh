v="it's  ünï"; echo "${v@Q}" "${v@U}" "${v@L}" "${v@u}" "${v@E}"; a=(x 'y z'); echo "${a[@]@Q}" "${a[@]@A}"
declare -i n=4; echo "${n@a}" "${a@a}"
