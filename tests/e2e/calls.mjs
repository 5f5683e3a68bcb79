// The calls of queuetop-engine(7) through node-pg, which gives no parameter a type: node calls.mjs LIBRARIES HOST DATABASE PAGE
import assert from 'node:assert';
import fs from 'node:fs';
import { createRequire } from 'node:module';

const [libraries, host, database, page] = process.argv.slice(2);
const pg = createRequire(libraries + '/package.json')('pg');
const text = fs.readFileSync(page, 'utf8').split('<!-- calls -->')[1].split('<!-- /calls -->')[0];
const calls = Object.fromEntries([...text.matchAll(/^-- (\w+):[^\n]*\n([^;]*);$/gm)].map((m) => [m[1], m[2]]));
const used = new Set();

const open = async () => {
  const c = new pg.Client({ host, database, user: 'postgres' });
  await c.connect();
  return c;
};
const [worker, pusher] = [await open(), await open()];
const run = async (c, name, ...values) => {
  used.add(name);
  assert(calls[name], `the page has no call ${name}`);
  return (await c.query(calls[name], values)).rows;
};
const value = async (name, ...values) => Object.values((await run(worker, name, ...values))[0])[0];
const claim = async (n) => {
  const jobs = [];
  while (jobs.length < n) jobs.push(...await run(worker, 'claim', 'n', n - jobs.length, '60 s'));
  return jobs;
};
const arrays = (...jobs) => ['lease', 'version', 'seq'].map((k) => jobs.map((j) => j[k]));
const push = async (payload) => (await run(pusher, 'push', 'mail', payload))[0].id;

// push
const one = await push({ to: 1 });
const two = (await run(pusher, 'insert', 'mail', { to: 2 }))[0].id;
const later = ['mail', '{"to": 3}', 'u', '5 min'];
assert.deepEqual([(await run(pusher, 'push_later', ...later))[0].pushed, (await run(pusher, 'push_later', ...later))[0].pushed], [true, false]);
const many = await run(pusher, 'push_many', ['mail', 'mail'], ['4', '"5"'], ['5 min', '6 min']);
assert.deepEqual(many.map((j) => [j.n, j.pushed]), [[1, true], [2, true]]);
assert.equal((await run(pusher, 'outcome', one))[0].state, 'ready');

// work
const session = '00000000-0000-0000-0000-000000000001';
await run(worker, 'start', 'n', session, 'h', process.pid, '1', 4);
assert.equal(await value('beat', 'n', session), 'up');
let jobs = await claim(2);
assert.deepEqual(jobs.map((j) => [j.id, j.payload, j.try]), [[one, { to: 1 }, 1], [two, { to: 2 }, 1]]);
const [a, b] = jobs;
assert(await value('extend_lease', 'n', a.lease, a.version, '5 min') > new Date());
assert.equal((await run(worker, 'extend', 'n', [b.lease], [b.version], '5 min'))[0].outcome, 'extended');
assert.equal(await value('complete_job', 'n', a.lease, a.version, a.seq, 'sent'), 'done');
assert.equal((await run(worker, 'complete', 'n', ...arrays(b), [Buffer.from([0xff])]))[0].outcome, 'done');
const [first] = await run(pusher, 'outcome', one), [second] = await run(pusher, 'outcome', two);
assert.deepEqual([first.state, first.result_text, second.state, second.result_text], ['completed', 'sent', 'completed', null]);
assert.deepEqual([...second.result], [0xff]);

// fail, give back
for (const to of [4, 5, 6]) await push(JSON.stringify({ to }));
const [c, d, e] = await claim(3);
assert.equal(await value('fail_job', 'n', c.lease, c.version, c.seq, 'no'), 'retry');
assert.equal((await run(worker, 'fail', 'n', ...arrays(d), ['never'], [null], [true]))[0].outcome, 'failed');
assert.equal((await run(pusher, 'outcome', d.id))[0].error, 'never');
assert.equal((await run(worker, 'give_back', 'n', ...arrays(e)))[0].outcome, 'given back');
assert.equal(await value('complete_job', 'n', c.lease, c.version + 9, c.seq, null), 'lost');

// wait: a push wakes the worker
let slot = -1, woken = false;
worker.on('notification', () => { woken = true; });
for (let last; !last;) {
  const rows = await run(worker, 'claim_or_wait', 'n', 1, '60 s', worker.processID, slot);
  slot = rows[0].slot;
  if (rows[0].lease) {
    const [j] = rows;
    assert.equal(await value('complete_job', 'n', j.lease, j.version, j.seq, 'ok'), 'done');
    last = j.payload.to === 7;
  } else if (rows[0].wait_ms > 0 && slot >= 0) {
    await push('{"to": 7}');
    while (!woken) await new Promise((done) => { worker.once('notification', done); if (woken) done(); });
  }
}
await run(worker, 'stop', 'n', session);
assert.deepEqual([...used].sort(), Object.keys(calls).sort());
await Promise.all([worker.end(), pusher.end()]);
