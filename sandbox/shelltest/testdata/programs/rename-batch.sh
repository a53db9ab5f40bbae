touch 'IMG 1.JPG' 'IMG 2.JPG' notes.TXT; for f in *.JPG *.TXT; do n=${f,,}; mv -- "$f" "${n// /-}"; done; ls; for f in img-*.jpg; do mv "$f" "$(printf 'photo-%03d.jpg' "${f//[!0-9]/}")"; done; ls
