x=y; y=z; echo "${!x}"; a_1=p; a_2=q; echo "${!a_@}"; v=a_2; echo "${!v}"; f() { echo "${!#}" "$#"; }; f 1 2 last; printf -v "dyn$x" '%03d' 7; echo "$dyny"
