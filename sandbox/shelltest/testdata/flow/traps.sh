trap 'echo bye' EXIT; trap 'echo "got usr1"' USR1; kill -USR1 $$; trap 'echo "err at $LINENO: $BASH_COMMAND"' ERR; false; true; trap - ERR; false; trap; (echo in subshell; trap); exit 6
