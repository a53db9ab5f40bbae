seq 1 30 > n
head -n3 n; tail -n3 n; head -n -27 n; tail -n +28 n; head -c5 n; tail -c6 n
head -q -n1 n n; head -v -n1 n; tail -n1 n n
