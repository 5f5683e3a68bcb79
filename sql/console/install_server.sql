-- The server's version, asked before any statement that an old server does not know.
select current_setting('server_version')
