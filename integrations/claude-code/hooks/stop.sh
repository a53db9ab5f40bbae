#!/bin/sh
# Reminds Claude once in a conversation to save, if the user wrote at least five messages and
# nothing was saved. The script reads the file of the conversation, writes nothing, and does
# not use the network.
input=$(cat)
case $input in *'"stop_hook_active":true'*) exit 0 ;; esac
conversation=$(printf '%s' "$input" | sed -n 's/.*"transcript_path":"\([^"]*\)".*/\1/p')
[ -r "$conversation" ] || exit 0
grep -q 'Nothing from this conversation is saved in Satchel yet.' "$conversation" && exit 0
grep '"type":"tool_use"' "$conversation" | grep -qE '"name":"mcp__[^"]*satchel__(remember|forget|write|edit|bash)"' && exit 0
[ "$(grep -c '"role":"user","content":"' "$conversation")" -ge 5 ] || exit 0
cat "${0%/*}/stop.json"
