echo 'never closed
