import type { Producer } from '../../../proof/workload/foreign.ts'
import { parseUrl } from '../../../src/engines/postgres/options.ts'
import { findProgram } from '../../servers/apt.ts'
import { runProgram } from './program.ts'

/** The plain INSERT of docs/transactions.md, by psql. */
export function psqlProducer(url: string): Producer {
  const { servers, schema } = parseUrl(url)
  const hosts = servers.map((server) => new URL(server).host)
  const [first = ''] = servers
  const target = first.replace(new URL(first).host, hosts.join(','))
  return {
    program: 'psql',
    priority: 5,
    attempts: 3,
    // The table gives each row a random UUID.
    idOf: () => null,
    async produce(type, jobs) {
      const program = findProgram('psql', 'postgresql-client')
      if (program === null) throw new Error('psql is not installed')
      const rows = jobs.map(({ payload }) => `(${quoted(type)}, ${quoted(payload)})`)
      const input = `begin;
insert into "${schema}".jobs (type, payload) values ${rows.join(', ')};
select pg_notify(${quoted(`millrace:${schema}`)}, 'work');
commit;
`
      const args = ['--no-psqlrc', '--quiet', '--set', 'ON_ERROR_STOP=1', '--dbname', target]
      await runProgram({ program, args, input, env: { PGTARGETSESSIONATTRS: 'read-write' } })
    },
  }
}

/** Both psql and sqlite3 take it. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
