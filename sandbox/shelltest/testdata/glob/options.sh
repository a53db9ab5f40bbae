touch a b; shopt -s nullglob; echo x*y; echo "$(echo z* | wc -c)"; shopt -u nullglob; shopt -s failglob; echo q*; echo after
shopt -u failglob; shopt -s dotglob; touch .c; echo *; shopt -s nocaseglob; echo A; echo [A]; set -f; echo *
