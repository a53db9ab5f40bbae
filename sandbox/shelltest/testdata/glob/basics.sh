touch a1 a2 b1 .h 'sp ace'; mkdir d; touch d/x
echo *; echo a?; echo [ab]1; echo [!a]*; echo .h*; echo */; echo d/*; echo nomatch*; echo 'a*' "a*" a\*
