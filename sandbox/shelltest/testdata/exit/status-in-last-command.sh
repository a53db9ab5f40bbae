echo before; sh -c 'exit 77'
