touch -d '2024-02-29T12:34:56Z' f; stat -c '%y %Y %s %a %h %F' f
TZ=Asia/Tokyo stat -c %y f; date -r f -u +%F; mkdir d; stat -c '%F %a' d; ln f g; stat -c %h f
test f -ef g && echo same; [ f -nt d ] || echo older
