{ bash -c 'kill -ABRT $$'; echo $?; bash -c 'kill -HUP $$'; echo $?; python3 -c 'import os; os.abort()'; echo $?; bash -c 'kill -USR2 $$'; echo $?; } 2> messages
sed -i -E 's/:  *[0-9]+ ([AHU])/: PID \1/' messages; cat messages
