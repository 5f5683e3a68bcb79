-- complete, fail and extend for one job have names of their own: complete_job, fail_job, extend_lease; pass_all has the
-- names that wait, pace the length of the cut, only_ours no parameter. These are those that the
-- base made; install drops them.
insert into made_function (name, source) values
    ('complete(text, bigint, integer, bigint, text)', 'de0103fe3602931c132e6ddb817993d1'),
    ('fail(text, bigint, integer, bigint, text)', '5e70da3a5bafbb9f7804e4d4b485466a'),
    ('extend(text, bigint, integer, interval)', '9cae704e215fead6480b55743fb941b1'),
    ('pass_all(tick)', 'e6572c0e38c7756044cd399396b4c404'),
    ('pace(tick, integer, integer, boolean)', '77516d4bd55861ce1379cc84ab7405d7'),
    ('only_ours(name)', 'c23fc5e9541f37abe07fd624f9a0e527')
on conflict do nothing;
