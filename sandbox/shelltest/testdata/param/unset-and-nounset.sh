set -u; echo "${ok:-fine}"; (echo "$missing"); echo "status $?"; (echo "${arr[0]}"); echo "status $?"; echo "$#" "${1-none}"
