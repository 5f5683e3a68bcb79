-- Says in words why `queuetop uninstall` cannot be done by this user, or on this schema (setting queuetop.schema).
DO $$
DECLARE
    s     text := current_setting('queuetop.schema');
    owner oid := (SELECT nspowner FROM pg_namespace WHERE nspname = current_setting('queuetop.schema'));
BEGIN
    IF owner IS NULL THEN
        RAISE 'there is no schema %', quote_ident(s) USING errcode = '3F000';
    ELSIF NOT pg_has_role(owner, 'USAGE') THEN
        RAISE 'schema % belongs to %, and % is not a member of that role', quote_ident(s), owner::regrole,
            quote_ident(current_user)
            USING errcode = '42501';
    END IF;
END $$
