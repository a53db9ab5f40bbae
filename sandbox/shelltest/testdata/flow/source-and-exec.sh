cat > lib.sh <<'X'
v=from-lib
f() { echo "f of lib $1"; }
return 2
echo never
X
. ./lib.sh; echo "$? $v"; f x; source nothing.sh; echo $?; printf '#!/bin/bash\necho "script ${0##*/} $*"; exit 4\n' > s.sh; ./s.sh; echo $?; chmod +x s.sh; ./s.sh a 'b c'; echo $?; bash s.sh; (exec ./s.sh replaced; echo never)
