-- Stops `queuetop uninstall` if something has come since the user was asked: uninstall_found.sql has looked again,
-- behind the locks. With --force (setting queuetop.force) only tables that nobody looked at are a reason. What is
-- left is the moment between that look and the drop, for what takes no lock on a table: a function or a type.
DO $$
BEGIN
    IF current_setting('queuetop.tables') <> current_setting('queuetop.seen_tables') THEN
        RAISE 'the tables in schema % are others than before; nothing was changed: look again',
            quote_ident(current_setting('queuetop.schema')) USING errcode = 'QT006';
    ELSIF current_setting('queuetop.force') = 'true' THEN
        RETURN;
    ELSIF current_setting('queuetop.alive') <> '' THEN
        RAISE 'it is in use: %; nothing was changed (--force drops it anyway)', current_setting('queuetop.alive')
            USING errcode = 'QT006';
    ELSIF current_setting('queuetop.dependents') <> '' THEN
        RAISE 'these would be dropped, too: % (--force does that)', current_setting('queuetop.dependents')
            USING errcode = 'QT006';
    ELSIF current_setting('queuetop.functions') <> current_setting('queuetop.seen_functions') THEN
        RAISE 'the functions in schema % are others than before; nothing was changed: look again',
            quote_ident(current_setting('queuetop.schema')) USING errcode = 'QT006';
    END IF;
END $$
