ls nothere > a 2>&1; wc -l < a; ls nothere 2>&1 > b | wc -l; wc -c < b; cat < nothere; echo "status $?"
echo x > d/e; echo "status $?"; mkdir d; echo x > d; echo "status $?"
