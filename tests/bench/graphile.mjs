// graphile-worker's own runner with the settings under which its performance page gives its figures; tasks do nothing.
//   node graphile.mjs drain     runs the jobs that wait, then ends
//   node graphile.mjs           until SIGTERM; prints the ms from a payload's t (seconds since 1970) to the start of its task
import { createRequire } from 'node:module';

const { run, runOnce, Logger } = createRequire(process.env.PEERS + '/package.json')('graphile-worker');
const once = process.argv[2] === 'drain';
const now = () => performance.timeOrigin + performance.now();
const task = once ? () => {} : ({ t }) => { process.stdout.write(`${(now() - t * 1000).toFixed(3)}\n`); };
const options = {
  preset: {
    worker: {
      connectionString: `postgres:///graphile?host=${process.env.PGHOST}&user=${process.env.PGUSER}`,
      concurrentJobs: 24,
      maxPoolSize: 25,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  },
  logger: new Logger(() => () => {}),
  taskList: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`queue${i + 10}`, task])),
};
if (once) {
  await runOnce(options);
  process.exit(0);
}
await (await run(options)).promise;
