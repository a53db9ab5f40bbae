mkdir -p a/b; echo 1 > a/1; echo 2 > a/b/2; ln -s 1 a/link; chmod 700 a/b
tar -cf t.tar a; tar -tf t.tar | sort; mkdir out; tar -xf t.tar -C out; diff -r a out/a && echo same
tar -czf t.tgz a && gzip -t t.tgz && tar -xzOf t.tgz a/1; rm t.tar t.tgz
tar -xf nothing.tar; echo "status $?"
