parse() { local OPTIND o; while getopts ':ab:c' o; do case $o in a) echo a ;; b) echo "b=$OPTARG" ;; :) echo "needs $OPTARG" ;; \?) echo "bad $OPTARG" ;; *) echo $o ;; esac; done; shift $((OPTIND - 1)); echo "rest $*"; }
parse -a -b val -c x y; parse -cb; parse -z -- -a
