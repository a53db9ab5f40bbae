(exit 0); echo $?; (exit 255); echo $?; (exit 256); echo $?; (exit -1); echo $?; nosuchcommand; echo $?; ./nofile; echo $?; touch noexec; ./noexec; echo $?; /; echo $?; exit 42
