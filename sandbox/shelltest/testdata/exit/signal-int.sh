kill -INT $$; echo after
