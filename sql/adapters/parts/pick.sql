-- CTE pick: the jobs of an act, locked; rows that another transaction has locked are left alone. {rows}: the part that
-- has the rows t of the table; {which}: the condition on them.
with pick as (
    select t.id
-- part: {rows}
    where t.id = any({ids}) and {which}
    for update of t skip locked
)
