import { stopPostgresServers } from './engines/postgres.ts'
import { playShortRound } from './short-round.ts'

// I1 I3 I5 I6
playShortRound('no promise is broken on Postgres while processes, the wire and the server are struck', {
  engine: 'postgres',
  seed: 20_261_123,
  nemeses: [
    ...['kill', 'pause', 'term', 'opening', 'rolling', 'clock', 'wire-cut', 'wire-answers-lost'],
    ...[
      'server-crash',
      'server-restart',
      'server-freeze',
      'terminate-all',
      'cancel-statements',
      'row-locks',
      'vacuum-full',
    ],
  ],
  jobs: 600,
  faults: 11,
  stopServers: stopPostgresServers,
})
