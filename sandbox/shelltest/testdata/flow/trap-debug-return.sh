f() { echo body; }; trap 'echo "return"' RETURN; set -T; f; trap - RETURN; set +T; trap 'echo "D: $BASH_COMMAND"' DEBUG; x=1; echo $x; trap - DEBUG; echo end
