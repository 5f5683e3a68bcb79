-- The server's version, before anything is asked that an old server does not know.
select current_setting('server_version')
