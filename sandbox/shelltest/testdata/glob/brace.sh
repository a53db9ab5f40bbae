echo {a,b}{1,2} {1..5} {01..03} {a..e..2} {5..1} x{,y,z} {a,{b,c}} {single} '{a,b}'; touch {x,y}.{md,txt}; ls
