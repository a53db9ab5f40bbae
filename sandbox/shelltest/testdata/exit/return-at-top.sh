return 5; echo "status $?"
