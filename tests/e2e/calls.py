"""The calls of queuetop-engine(7) through psycopg 3: python3 calls.py HOST DATABASE PAGE"""

import re
import select
import sys
import uuid
from datetime import datetime, timedelta, timezone

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Json, Jsonb

host, database, page = sys.argv[1:]
text = open(page, encoding="utf-8").read().split("<!-- calls -->")[1].split("<!-- /calls -->")[0]
calls = {name: re.sub(r"\$(\d+)", r"%(p\1)s", sql) for name, sql in re.findall(r"^-- (\w+):[^\n]*\n([^;]*);$", text, re.M)}
used = set()


def connect():
    return psycopg.connect(host=host, dbname=database, user="postgres", autocommit=True, row_factory=dict_row)


worker, pusher = connect(), connect()


def run(conn, name, *values):
    used.add(name)
    return conn.execute(calls[name], {f"p{i + 1}": v for i, v in enumerate(values)}).fetchall()


def value(name, *values):
    return next(iter(run(worker, name, *values)[0].values()))


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r} is not {wanted!r}")


def claim(n):
    jobs = []
    while len(jobs) < n:
        jobs += run(worker, "claim", "n", n - len(jobs), timedelta(minutes=1))
    return jobs


def arrays(*jobs):
    return [[j[k] for j in jobs] for k in ("lease", "version", "seq")]


def push(payload):
    return run(pusher, "push", "mail", payload)[0]["id"]


# push
one, two = push(Jsonb({"to": 1})), run(pusher, "insert", "mail", Jsonb({"to": 2}))[0]["id"]
later = ["mail", Json({"to": 3}), "u", timedelta(minutes=5)]
equal([run(pusher, "push_later", *later)[0]["pushed"] for _ in range(2)], [True, False])
many = run(pusher, "push_many", ["mail", "mail"], ["4", '"5"'], [timedelta(minutes=5), timedelta(minutes=6)])
equal([(j["n"], j["pushed"]) for j in many], [(1, True), (2, True)])
equal(run(pusher, "outcome", one)[0]["state"], "ready")

# work
session = uuid.uuid4()
run(worker, "start", "n", session, "h", 1, "1", 4)
equal(value("beat", "n", session), "up")
a, b = claim(2)
equal([a["id"], a["payload"], b["id"], b["try"]], [one, {"to": 1}, two, 1])
assert value("extend_lease", "n", a["lease"], a["version"], timedelta(minutes=5)) > datetime.now(timezone.utc)
equal(run(worker, "extend", "n", [b["lease"]], [b["version"]], "5 min")[0]["outcome"], "extended")
equal(value("complete_job", "n", a["lease"], a["version"], a["seq"], "sent"), "done")
equal(run(worker, "complete", "n", *arrays(b), [b"\xff"])[0]["outcome"], "done")
first, second = run(pusher, "outcome", one)[0], run(pusher, "outcome", two)[0]
equal([first["state"], first["result_text"], second["result"], second["result_text"]], ["completed", "sent", b"\xff", None])

# fail, give back
for to in "456":
    push('{"to": %s}' % to)
c, d, e = claim(3)
equal(value("fail_job", "n", c["lease"], c["version"], c["seq"], "no"), "retry")
equal(run(worker, "fail", "n", *arrays(d), ["never"], [None], [True])[0]["outcome"], "failed")
equal(run(pusher, "outcome", d["id"])[0]["error"], "never")
equal(run(worker, "give_back", "n", *arrays(e))[0]["outcome"], "given back")
equal(value("complete_job", "n", c["lease"], c["version"] + 9, c["seq"], None), "lost")


def next_row(slot):
    return run(worker, "claim_or_wait", "n", 1, "60 s", worker.info.backend_pid, slot)[0]


def idle():
    """Works until there is nothing to do and this session waits; returns its slot."""
    slot = -1
    while True:
        row = next_row(slot)
        slot = row["slot"]
        if row["lease"]:
            equal(value("complete_job", "n", row["lease"], row["version"], row["seq"], "ok"), "done")
        elif slot >= 0 and row["wait_ms"] > 0:
            return slot


# wait: a push wakes the worker; but not if a statement has come between
slot = idle()
push('{"to": 7}')
equal(len(select.select([worker.fileno()], [], [], 300)[0]), 1)
row = next_row(slot)
equal(row["payload"], {"to": 7})
equal(value("complete_job", "n", row["lease"], row["version"], row["seq"], "ok"), "done")
slot = idle()
push('{"to": 8}')
worker.execute("select 1").fetchone()
equal(select.select([worker.fileno()], [], [], 0)[0], [])
equal(next_row(slot)["payload"], {"to": 8})

run(worker, "stop", "n", session)
equal(sorted(used), sorted(calls))
