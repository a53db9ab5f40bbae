{ echo 3; echo 1; (echo 2); } | sort; (cd / && pwd) | cat; { cat; echo end; } <<< begin
