/**
 * Shows a worker under pm2: `pm2 start ecosystem.config.cjs`.
 *
 * `pm2 stop` sends SIGINT and kills 1.6 s later unless told otherwise, which would cut every drain short. Here it waits
 * 40 s: the drain of 30 s, and time to abort, to give back and to close. For a forced stop use `pm2 delete`, or
 * `kill -9` with the process id; `pm2 kill` would end the daemon and every other app with it.
 */
module.exports = {
  apps: [
    {
      name: 'millrace-worker',
      script: 'node_modules/millrace/dist/bin/millrace.js',
      args: 'work jobs.ts --drain 30s',
      env: { MILLRACE_ENGINE: 'sqlite:./millrace.db' },
      // Cluster mode would share nothing here; more workers are more processes of this kind.
      exec_mode: 'fork',
      instances: 1,
      kill_timeout: 40_000,
      autorestart: true,
      // A worker that stopped because it was told to exits 0 and stays down.
      stop_exit_codes: [0],
    },
  ],
}
