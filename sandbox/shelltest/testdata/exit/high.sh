exit 200
