echo hello | tee a b | tr a-z A-Z
echo more | tee -a a > /dev/null
cat a b
echo x | tee /no/such/dir/file; echo "status $?"
