-- Which functions an install made, so that the next one drops those that it no longer makes. The first rows are what
-- trees before the base made.
create table if not exists made_function (
    name   text collate "C" primary key,
    source text not null
);
comment on table made_function is 'The functions that the last install made here. The next one drops those of '
    'them that it does not make';
comment on column made_function.name is 'With the types of its parameters';
comment on column made_function.source is 'The md5 of its source: if somebody has replaced the function since, it is '
    'not dropped';
insert into made_function (name, source) values
    ('complete_leases(text, bigint[], integer[], bigint[], timestamp with time zone[], bytea[])',
     '7e9a870da95d77cce5d0a1749a3d5269'),
    ('many_check(uuid[], text[], integer[], integer[], text[], text[], interval[], interval[])',
     'ad18786c2f894d119a8f0a58b0d1c460'),
    ('push_rows(uuid[], text[], text[], integer[], timestamp with time zone[], interval[], text[], integer[], '
     'interval[], interval[], text[], bytea[], text[], timestamp with time zone[], interval[], text[])',
     '4afcd06233ec3e8a2065d7644769a1f1')
on conflict do nothing;
