// Graphile Worker and pg-boss by their own libraries, for the tests of their adapters.
//   node engine.mjs ENGINE LIBRARIES HOST DATABASE WHAT [ARGUMENT]
//     setup          makes the schema and pushes jobs; some are worked, some fail. Each has its name in its payload: t
//     hold           takes jobs, says "holding", and stays so
//     drain          works all that is ready; what is left over is no longer able to fail
//     api CALLS      a JSON list of [method, argument, ...]; {"$date": s} stands for the time in s seconds
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [engine, libraries, host, database, what, argument] = process.argv.slice(2);
const load = async (name) => {
  const dir = `${libraries}/node_modules/${name}/`;
  const all = await import(pathToFileURL(dir + (JSON.parse(fs.readFileSync(dir + 'package.json')).main ?? 'index.js')));
  return { ...all.default, ...all, default: all.default };
};
const pg = createRequire(libraries + '/package.json')('pg');
const pool = new pg.Pool({ host, database, user: 'postgres', max: 10 });
const query = async (sql, values) => (await pool.query(sql, values)).rows;
const later = (s) => new Date(Date.now() + s * 1000);
const never = new Promise(() => setInterval(() => {}, 1000));
const revive = (key, value) => (value && typeof value === 'object' && '$date' in value ? later(value.$date) : value);

async function graphile() {
  const { makeWorkerUtils, runMigrations, runOnce, run, Logger } = await load('graphile-worker');
  const options = { pgPool: pool, logger: new Logger(() => () => {}), noHandleSignals: true };
  const good = async () => {};
  const bad = async () => { throw new Error('no such user 4711'); };
  const utils = await makeWorkerUtils(options);
  const push = (task, t, spec) => utils.addJob(task, { t }, spec);

  if (what === 'setup') {
    await runMigrations(options);
    await push('bad', 'failed1', { maxAttempts: 1 });
    await push('bad', 'failed2', { maxAttempts: 1 });
    await push('bad', 'retry1', { maxAttempts: 5 });
    await push('good', 'done1');
    await runOnce({ ...options, taskList: { good, bad } });
    await push('hold', 'held1', { queueName: 'lane' });
    await push('hold', 'held2', { maxAttempts: 1 });
    for (const t of ['ready1', 'ready2', 'ready3', 'ready4']) await push('good', t);
    await push('good', 'lane1', { queueName: 'lane' });
    await push('good', 'later1', { runAt: later(7200), jobKey: 'once' });
  } else if (what === 'hold') {
    let held = 0;
    const hold = () => { if (++held === 2) console.error('holding'); return never; };
    await (await run({ ...options, concurrency: 2, taskList: { hold } })).promise;
  } else if (what === 'drain') {
    await runOnce({ ...options, taskList: { good, bad: good, hold: good } });
  } else {
    for (const [method, ...args] of JSON.parse(argument, revive)) await (method === 'sql' ? query(...args) : utils[method](...args));
  }
  await utils.release();
}

async function pgboss() {
  const all = await load('pg-boss');
  const Boss = all.PgBoss ?? all.default;
  const boss = new Boss({ host, database, user: 'postgres', schema: 'pgboss', supervise: false, schedule: false });
  boss.on('error', (e) => { throw e; });
  await boss.start();
  const version = await boss.schemaVersion();
  const take = async (queue, t) => { // the job called t: it is the only one in its queue that is due
    const jobs = await boss.fetch(queue, { batchSize: 1 });
    if (jobs[0]?.data.t !== t) throw new Error(`${t} was expected from ${queue}`);
    return jobs[0].id;
  };

  if (what === 'setup') {
    await boss.createQueue('dead', {});
    await boss.createQueue('mail', { name: 'mail', deadLetter: 'dead', retryLimit: 0, notify: true });
    await boss.createQueue('again', { name: 'again', retryLimit: 3, retryDelay: 7200 });
    await boss.createQueue('short', { name: 'short', policy: 'short' });
    await boss.createQueue('beat', version > 30 ? { heartbeatSeconds: 30 } : {});
    for (const t of ['failed1', 'failed2', 'failed3']) {
      await boss.send('mail', { t });
      await boss.fail('mail', await take('mail', t), new Error('no such user 4711'));
    }
    await boss.send('again', { t: 'retry1' });
    await boss.fail('again', await take('again', 'retry1'), { message: 'connection refused' });
    await boss.send('mail', { t: 'done1' });
    await boss.complete('mail', await take('mail', 'done1'), { sent: true });
    await boss.send('again', { t: 'done2' });
    await boss.complete('again', await take('again', 'done2'));
    await boss.cancel('mail', await boss.send('mail', { t: 'cancelled1' }));
    await boss.cancel('short', await boss.send('short', { t: 'twice1' }));
    await boss.send('short', { t: 'once1' });
    await boss.send('mail', { t: 'held1' }); // taken by hold
    await boss.send('beat', { t: 'held2' });
    await boss.schedule('mail', '0 3 * * *', { t: 'nightly' });
    if (version >= 45) { // two upserted jobs of one key can't wait; a queue of policy short takes one job
      const upsert = async (t, singletonKey) => (await boss.upsert('keyed', { t }, { singletonKey })).jobs[0];
      await boss.createQueue('keyed');
      await boss.cancel('keyed', await upsert('keyed1', 'k'));
      await upsert('held3', 'h');
      await boss.createQueue('dead2');
      await boss.createQueue('one', { policy: 'short', deadLetter: 'dead2', retryLimit: 0 });
      await boss.send('one', { t: 'refused1' });
      await boss.fail('one', await take('one', 'refused1'), new Error('no such user 4711'));
      await boss.send('one', { t: 'once2' });
    }
  } else if (what === 'fill') {
    for (const t of ['ready1', 'ready2', 'ready3', 'ready4']) await boss.send('mail', { t });
    await boss.send('mail', { t: 'later1' }, { startAfter: 7200 });
    if (version >= 45) for (const [t, singletonKey] of [['keyed2', 'k'], ['keyed3', 'h']]) await boss.upsert('keyed', { t }, { singletonKey });
  } else if (what === 'hold') {
    await take('mail', 'held1');
    await take('beat', 'held2');
    if (version >= 45) await take('keyed', 'held3');
    console.error('holding');
    await never;
  } else if (what === 'drain') {
    for (const queue of (await boss.getQueues()).map((q) => q.name)) {
      for (let jobs; (jobs = await boss.fetch(queue, { batchSize: 50 }))?.length;) await boss.complete(queue, jobs.map((j) => j.id));
    }
  } else {
    for (const [method, ...args] of JSON.parse(argument, revive)) await (method === 'sql' ? query(...args) : boss[method](...args));
  }
  await boss.stop({ graceful: false });
}

await { graphile, pgboss }[engine]();
await pool.end().catch(() => {});
process.exit(0);
