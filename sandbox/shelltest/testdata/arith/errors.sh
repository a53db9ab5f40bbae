echo $((1 / 0)); echo "status $?"
(echo $((08))); echo "status $?"
(echo $((1 +))); echo "status $?"
echo $((9223372036854775807 + 1))
