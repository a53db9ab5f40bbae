trap 'exit 3' TERM; kill $$; echo never
