exec 9> lock; flock 9 && echo locked; (flock -n 9 && echo inherited); flock -n lock -c 'echo taken'; echo $?; exec 9>&-; flock -n lock echo free
