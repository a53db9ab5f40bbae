echo before; python3 -c 'import os; os.abort()'
