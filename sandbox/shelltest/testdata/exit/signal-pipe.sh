kill -PIPE $$; echo after
