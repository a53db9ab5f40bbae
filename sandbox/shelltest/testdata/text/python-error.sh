python3 -c 'raise ValueError("no")'; echo "status $?"
python3 -c 'print(1'; echo "status $?"
echo 'print("from a pipe")' | python3
