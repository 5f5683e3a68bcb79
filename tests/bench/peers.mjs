// Sets up graphile-worker and pg-boss in their databases with their own libraries. While a few jobs go through them, it
// listens to the statements that the libraries send, and makes scripts for pgbench of them. So the scripts are exactly what
// the installed version sends, and our files have no copy of it.
//   node peers.mjs graphile|pgboss DIRECTORY SIZES    environment: PEERS (where node_modules is), PGHOST, PAYLOAD
import { createRequire } from 'node:module';
import { writeFileSync } from 'node:fs';

const [engine, dir, sizes] = process.argv.slice(2);
const load = createRequire(process.env.PEERS + '/package.json');
const pg = load('pg');
const connectionString = `postgres:///${engine}?host=${process.env.PGHOST}&user=${process.env.PGUSER}`;
const payload = JSON.parse(process.env.PAYLOAD);
const queues = Array.from({ length: 50 }, (_, i) => `queue${i + 10}`); // as pgbench picks them: 'queue' || random(10, 59)

let heard = [];
const query = pg.Client.prototype.query;
pg.Client.prototype.query = function (q, values, ...rest) {
  if (typeof q === 'string') heard.push({ text: q, values: Array.isArray(values) ? values : [] });
  else if (q?.text) heard.push({ text: q.text, values: q.values ?? [] });
  return query.call(this, q, values, ...rest);
};
async function during(work, wanted) { // the longest statement that matches
  heard = [];
  await work();
  const fit = heard.filter((h) => wanted.test(h.text)).sort((a, b) => b.text.length - a.text.length);
  if (!fit.length) throw new Error(`no statement like ${wanted} among ${heard.length}`);
  return fit[0];
}

const literal = (v) => v === null || v === undefined ? 'null' : typeof v === 'number' || typeof v === 'boolean' ? String(v)
  : `'${(typeof v === 'object' ? JSON.stringify(v) : String(v)).replaceAll("'", "''")}'`;
// The statement on one line, with values for $1, $2, ...: given = { number: expression }; the others as the library sent them.
const fill = ({ text, values }, given) => text.replace(/--[^\n]*/g, '').replace(/\s+/g, ' ').trim().replace(/;$/, '')
  .replace(/\$(\d+)/g, (_, n) => given[n] ?? literal(values[n - 1]));
// The rows of a statement as arrays, because pgbench keeps one row only: its last part becomes a CTE, too.
function gathered(sql, columns) {
  let at = 0;
  if (/^with\b/i.test(sql)) {
    for (let depth = 0, i = 4; i < sql.length; i++) {
      if (sql[i] === '(') depth++;
      else if (sql[i] === ')') depth--;
      else if (depth === 0 && /^\s(update|delete|insert|select)\s/i.test(sql.slice(i, i + 9))) { at = i; break; }
    }
  }
  return `${at ? sql.slice(0, at) + ',' : 'with'} rows_ as (${sql.slice(at)}) select ${columns} from rows_ \\gset\n`;
}
const write = (name, text) => writeFileSync(`${dir}/${engine}.${name}`, text);

async function graphile() {
  const { runOnce, runMigrations, makeWorkerUtils, Logger } = load('graphile-worker');
  const logger = new Logger(() => () => {});
  await runMigrations({ connectionString, logger });
  const utils = await makeWorkerUtils({ connectionString, logger });
  for (const q of queues) await utils.addJob(q, payload);
  const taskList = Object.fromEntries(queues.map((q) => [q, () => {}]));
  const worker = { connectionString, concurrentJobs: 1, maxPoolSize: 10 };
  await runOnce({ preset: { worker }, logger, taskList });
  for (const n of sizes.split(',').map(Number)) {
    for (let i = 0; i < n; i++) await utils.addJob(queues[i % 50], payload);
    const batch = n === 1 ? {} : { localQueue: { size: n }, completeJobBatchDelay: 0 };
    const preset = { worker: { ...worker, ...batch, concurrentJobs: Math.min(n, 24) } };
    const run = () => runOnce({ preset, logger, taskList });
    await during(run, /for update/i);
    const all = heard;
    const pick = (re) => all.filter((h) => re.test(h.text)).sort((a, b) => b.values[0].length - a.values[0].length)[0];
    const get = pick(/for update\s+skip locked/i);
    const tasks = `'{${get.values[1].join(',')}}'`;
    write(`claim.${n}`, gathered(fill(get, { 1: ':client_id::text', 2: tasks }).replace(/returning \*$/, 'returning jobs.id as key_, *'),
      "coalesce(array_agg(key_), '{}') as ids, count(payload) as p"));
    const done = pick(n === 1 ? /^\s*delete from\b(?!.*unnest)/is : /^\s*delete from\b.*unnest/is);
    write(`done.${n}`, fill(done, { 1: n === 1 ? '(:ids::bigint[])[:i]' : ':ids' }).replace(/:ids::bigint\[\]\)/, ':ids::bigint[])') + ';\n');
  }
  await utils.release();
}

async function pgboss() {
  const PgBoss = load('pg-boss');
  const boss = new PgBoss({ connectionString, schema: 'pgboss', supervise: false, schedule: false });
  boss.on('error', (e) => { throw e; });
  await boss.start();
  for (const q of queues) await boss.createQueue(q);
  const one = await during(() => boss.send(queues[0], payload), /insert into .*job/i);
  write('push.1', fill(one, { 2: "'queue' || (10 + :client_id)" }) + ';\n');
  for (const n of sizes.split(',').map(Number).filter((n) => n > 1).concat(1000)) {
    const jobs = Array.from({ length: n }, () => ({ name: queues[0], data: payload }));
    write(`push.${n}`, fill(await during(() => boss.insert(jobs), /insert into .*job/i), {}) + ';\n');
  }
  for (const n of sizes.split(',').map(Number)) {
    let jobs;
    const get = await during(async () => { jobs = await boss.fetch(queues[0], { batchSize: n }); }, /skip locked/i);
    const name = "'queue' || :q";
    write(`claim.${n}`, '\\set q random(10, 59)\n' + gathered(fill(get, { 1: name, 2: n }), "coalesce(array_agg(id), '{}') as ids, count(data) as p"));
    const done = await during(() => boss.complete(queues[0], jobs.map((j) => j.id)), /update .*job/is);
    write(`done.${n}`, fill(done, { 1: name, 2: ':ids' }) + ';\n');
  }
  await boss.stop({ graceful: false });
}

await { graphile, pgboss }[engine]();
process.exit(0);
