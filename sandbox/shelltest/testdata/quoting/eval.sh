cmd='echo "a b" | tr a-z A-Z'; eval "$cmd"; x='$y'; y=z; eval "echo $x"; $(echo echo from command)
eval 'syntax ( error'; echo "status $?"
