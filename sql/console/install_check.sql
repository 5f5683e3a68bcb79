-- Asked under the lock of install_begin: is the installed version still the one that was seen? If not, the installation
-- begins again.
do $$
begin
    if (select version from meta) <> pg_catalog.current_setting('queuetop.version')::int then
        raise 'another installer was faster' using errcode = '40001';
    end if;
end $$
