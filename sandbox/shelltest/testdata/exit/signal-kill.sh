echo before; kill -KILL $$
