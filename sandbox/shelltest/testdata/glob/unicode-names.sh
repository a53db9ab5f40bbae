touch 'ä ö' $'new\nline' '日本.md' '-dash' "quo'te"; printf '%s\n' *; ls; ls -1 --quoting-style=c; ls -b; rm -- -dash; echo ?' '?; rm *$'\n'*
