import { pathToFileURL } from 'node:url'
import type { Producer } from '../../../proof/workload/foreign.ts'
import { findProgram } from '../../servers/apt.ts'
import { runProgram } from './program.ts'
import { quoted } from './psql.ts'

/** An INSERT of the canonical columns (src/engines/sqlite/README.md), by the sqlite3 program. */
export function sqlite3Producer(file: string): Producer {
  return {
    program: 'sqlite3',
    priority: 5,
    attempts: 3,
    idOf: (_type, n) => `sqlite3-${n}`,
    async produce(type, jobs) {
      const program = findProgram('sqlite3', 'sqlite3')
      if (program === null) throw new Error('sqlite3 is not installed')
      const now = `strftime('%Y-%m-%dT%H:%M:%fZ', 'now')`
      const rows = jobs.map(
        ({ n, payload }) => `(${quoted(`sqlite3-${n}`)}, ${quoted(type)}, ${now}, ${quoted(payload)}, ${now}, ${now})`,
      )
      // Debian's program has a fault in resetting the log that the engine refuses in its own SQLite, so it must never do that.
      const input = `.timeout 5000
pragma wal_autocheckpoint = 0;
begin immediate;
insert into job_queue (id, type, scheduled_at, payload, created_at, updated_at) values ${rows.join(', ')};
commit;
`
      // A file that is away for a moment must not be made anew.
      const target = `${pathToFileURL(file).href}?mode=rw`
      await runProgram({ program, args: ['-batch', '-bail', target], input })
    },
  }
}
