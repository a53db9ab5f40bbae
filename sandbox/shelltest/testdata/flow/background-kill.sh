sleep 100 & p=$!; kill $p; wait $p 2>/dev/null; echo $?; sleep 100 & p=$!; kill -KILL $p; wait $p 2>/dev/null; echo $?; kill -0 $p 2>/dev/null; echo $?; kill -l 15; kill -l 137
