python3 -c '
import pathlib, os
for i in range(3):
    pathlib.Path(f"f{i}.txt").write_text("x" * i + "ü\n", encoding="utf-8")
os.symlink("f1.txt", "link")
os.chmod("f2.txt", 0o600)
print(sorted(os.listdir(".")), os.stat("f2.txt").st_size)
'
cat f*.txt link
