p=d; for i in {1..20}; do p=$p/d; done; mkdir -p $p; echo deep > $p/f; find . -name f -exec cat {} \;; (cd $p && cd - > /dev/null); rm -r d; mkdir x; cd x; rmdir ../x; touch y; echo $?
