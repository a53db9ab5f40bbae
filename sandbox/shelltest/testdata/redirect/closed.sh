echo x >&-; echo "status $?"; cat <&-; echo "status $?"; (exec 1>&-; echo y) 2>&1; (exec 2>&-; ls nothere); echo "status $?"
