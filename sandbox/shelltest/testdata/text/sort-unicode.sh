printf 'zebra\nÄpfel\nApfel\nöl\nZoo\nüber\n日本\n' | sort
printf 'b\nB\na\nA\n' | sort -f
printf 'b\nB\na\nA\n' | sort
