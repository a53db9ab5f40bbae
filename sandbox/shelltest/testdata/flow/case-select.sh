for a in start stop 'two words' 12 ''; do case $a in start|begin) echo go ;; st*) echo halt ;; *' '*) echo spaced ;; [0-9]*) echo number ;; '') echo empty ;; esac; done
PS3='? '; select x in red blue; do echo "chose $x"; break; done <<< 2
